"""Learning curves parsed from logs of fairseq-train."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from ..system.errors import UserError
from .json_rows import Row, wrong_field
from .options import COMMAND, companion, shell, training_of
from .records import system_of

# Options that decide the sequences of the validation set, their masks and the loss.
_SAME = (
    *("data", "task", "tokens-per-sample", "sample-break-mode", "mask-prob"),
    *("criterion", "label-smoothing"),
)
# Measure -> its place in a point, and its name.
MEASURES = {
    "perplexity": (2, "validation perplexity"),
    "loss": (1, "validation loss, bits of a subword"),
}
_LINE = re.compile(r"\| valid \| (.*)")
# fairseq names them at the beginning of a training.
_GPU = re.compile(r"\| rank +\d+: capabilities = .* ; name = (.+?) *$", re.MULTILINE)
_PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")


@dataclass(frozen=True)
class LearningCurve(Row):
    """One training. ``points``: [updates, loss in bits, perplexity]; None for infinity and NaN."""

    system: str  # arch without roberta_ and its size
    arch: str
    segments: str
    seed: int
    parameters: int  # trained numbers; 0: unknown
    settings: dict[str, str]  # equal in curves that are comparable
    points: list[list[Union[float, None]]]
    revision: str
    command: str
    name: str = ""  # of a variant of the system
    gpus: str = ""  # names; empty: trained on a CPU

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.points or any(len(point) != 3 for point in self.points):
            raise wrong_field("points", self.points, "[updates, loss, perplexity] of each")

    @property
    def key(self) -> str:
        """Key of the row: the command of the training."""
        return self.command

    @property
    def what(self) -> str:
        """Name in a legend."""
        named = self.name or self.system
        return named if self.segments == "none" else f"{named}, {self.segments} segments"

    def finite(self, measure: str) -> list[tuple[float, float]]:
        """(updates, value) of the points where that is a number."""
        pairs = [(point[0], point[MEASURES[measure][0]]) for point in self.points]
        return [(n, value) for n, value in pairs if n is not None and value is not None]

    def lowest(self, measure: str) -> float:
        """Infinite where the last value is no number."""
        if self.points[-1][MEASURES[measure][0]] is None:
            return math.inf
        return min(value for _, value in self.finite(measure))


def read_log(text: str) -> list[list[float | None]]:
    """The points of a log in fairseq's ``json`` or ``simple`` format.

    Resumed trainings repeat updates: the last value counts.
    """
    points: dict[int, list[float | None]] = {}
    for line in text.split("\n"):
        match = _LINE.search(line)
        values = _values(match[1]) if match else {}
        if {"num_updates", "loss", "ppl"} <= values.keys():
            updates = int(values["num_updates"])
            points[updates] = [updates, _number(values["loss"]), _number(values["ppl"])]
    return [points[updates] for updates in sorted(points)]


def _values(text: str) -> dict[str, str]:
    """``{"valid_loss": "5.1"}`` or ``valid on 'valid' subset | loss 5.1`` -> loss: 5.1."""
    if text.startswith("{"):
        return {name.removeprefix("valid_"): str(value) for name, value in json.loads(text).items()}
    parts = (part.strip().rpartition(" ") for part in text.split("|"))
    return {name: value for name, _, value in parts}


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def read_training(folder: Path) -> LearningCurve:
    """The curve of a training, from ``train.log`` in its folder."""
    file = folder / "train.log"
    if not file.is_file():
        raise UserError(f"{file}: no such file; give a folder of diet-mt train or pretrain")
    log = file.read_text(encoding="utf-8", errors="replace")
    points = read_log(log)
    if not points:
        raise UserError(f"{file}: no validation in it; train on")
    training = training_of(file)
    if not training:
        raise UserError(f"{folder / 'command'}: no such file; give a folder of a training")
    options = {name: str(value) for name, value in training.items()}
    words = training.get(COMMAND)
    options["data"] = "/".join(Path(*words[1:2] if isinstance(words, list) else []).parts[-2:])
    parameters = _PARAMETERS.search(log)
    arch = options.get("arch", "")
    system = system_of(arch.removeprefix("roberta_"))
    seed = int(options.get("seed", 1))
    named = folder.resolve().name.removesuffix(f".{seed}")
    return LearningCurve(
        system=system,
        name=named if re.match(rf"{re.escape(system)}[._]", named) else "",
        arch=arch,
        segments=options.get("segment-encoding", "none"),
        seed=seed,
        parameters=int(parameters[1].replace(",", "")) if parameters else 0,
        settings={name: options.get(name, "") for name in _SAME},
        points=points,
        revision=companion(file, "revision"),
        command=shell(training),
        gpus=", ".join(sorted(set(_GPU.findall(log)))),
    )
