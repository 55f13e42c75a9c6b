"""Learning curves, parsed from logs of fairseq-train, and their pictures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from ..evaluation.json_rows import Row, read_rows, write_rows
from ..evaluation.options import COMMAND, companion, difference, shell, training_of
from ..evaluation.records import system_of
from ..system.errors import UserError
from ..system.options import need_file
from .style import line_styles, name_ends, pyplot, save, tick_text

# Options that determine the sequences of the validation set, their masks and the loss.
_SAME = (
    *("data", "task", "tokens-per-sample", "sample-break-mode", "mask-prob"),
    *("criterion", "label-smoothing"),
)
# Measure -> index in a point, and label.
MEASURES = {
    "perplexity": (2, "validation perplexity"),
    "loss": (1, "validation loss, bits of a subword"),
}
_LINE = re.compile(r"\| valid \| (.*)")
# fairseq logs the GPUs at the start of a training.
_GPU = re.compile(r"\| rank +\d+: capabilities = .* ; name = (.+?) *$", re.MULTILINE)
_PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")
_DASHES = ("-", "--", ":", "-.")  # for the seeds of a system


@dataclass(frozen=True)
class LearningCurve(Row):
    """The validations of one training.

    ``points``: [updates, loss in bits, perplexity]; None for infinity and NaN.
    """

    system: str  # arch without roberta_ and its size
    arch: str
    segments: str
    seed: int
    parameters: int  # trained numbers; 0: unknown
    settings: dict[str, str]  # equal in comparable curves
    points: list[list[Union[float, None]]]
    revision: str
    command: str
    name: str = ""  # of a variant of the system
    gpus: str = ""  # names; empty: CPU

    @property
    def key(self) -> str:
        """Key of the row: the command of the training."""
        return self.command

    @property
    def what(self) -> str:
        """Name in legends."""
        named = self.name or self.system
        return named if self.segments == "none" else f"{named}, {self.segments} segments"

    def finite(self, measure: str) -> list[tuple[float, float]]:
        """(updates, value) of the points with a finite value."""
        pairs = [(point[0], point[MEASURES[measure][0]]) for point in self.points]
        return [(n, value) for n, value in pairs if n is not None and value is not None]

    def lowest(self, measure: str) -> float:
        """Lowest value of a measure; infinite if the last one is not finite."""
        if self.points[-1][MEASURES[measure][0]] is None:
            return math.inf
        return min(value for _, value in self.finite(measure))


def read_log(text: str) -> list[list[float | None]]:
    """The points of a log in fairseq's ``json`` or ``simple`` format.

    If a resumed training repeats updates, the last values count.
    """
    points: dict[int, list[float | None]] = {}
    for values in map(_values, _LINE.findall(text)):
        if {"num_updates", "loss", "ppl"} <= values.keys():
            updates, *numbers = (float(values[name]) for name in ("num_updates", "loss", "ppl"))
            finite = [value if math.isfinite(value) else None for value in numbers]
            points[int(updates)] = [int(updates), *finite]
    return [points[updates] for updates in sorted(points)]


def _values(text: str) -> dict[str, str]:
    """Values in ``{"valid_loss": "5.1"}`` or ``valid on 'valid' subset | loss 5.1``, by name."""
    if text.startswith("{"):
        return {name.removeprefix("valid_"): str(value) for name, value in json.loads(text).items()}
    parts = (part.strip().rpartition(" ") for part in text.split("|"))
    return {name: value for name, _, value in parts}


def read_training(folder: Path) -> LearningCurve:
    """The curve of a training, from its folder. Raises :class:`UserError` without validations."""
    file = folder / "train.log"
    need_file(file, "file; give a folder of diet-mt train or pretrain")
    log = file.read_text(encoding="utf-8", errors="replace")
    points = read_log(log)
    if not points:
        raise UserError(f"{file}: no validation yet; continue the training")
    need_file(folder / "command", "file; give a folder of a training")
    training = training_of(file)
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


def draw(logs: Sequence[Path], out: Path, kind: str, measure: str) -> None:
    """Writes the curves to OUT.jsonl, and the picture of a measure to OUT.KIND.

    ``logs``: folders of trainings, their logs, or files of curves; the last one of a command
    counts. Perplexities of masked language models are comparable between systems, not between
    seeds: fairseq draws the masks of validation from ``--seed``, and those of epoch 1 each time.
    Raises :class:`UserError` for curves that are not comparable.
    """
    by_command: dict[str, LearningCurve] = {}
    for path in logs:
        of_rows = path.suffix == ".jsonl"
        folder = path if path.is_dir() else path.parent
        read = read_rows(LearningCurve, path) if of_rows else [read_training(folder)]
        by_command.update((curve.key, curve) for curve in read)
    curves = list(by_command.values())
    if not curves:
        raise UserError(f"{logs[0]}: no curves")
    for curve in curves:
        if what := difference(curves[0].settings, curve.settings):
            raise UserError(f"{curves[0].arch} and {curve.arch} are not comparable: {what}")
    write_rows(out.with_name(f"{out.name}.jsonl"), curves)
    save(plot(curves, measure), out.with_name(f"{out.name}.{kind}"))


def label(seeds: Sequence[LearningCurve], measure: str) -> str:
    """Legend of the seeds of a system, with their lowest values: ``diet_rel: 31.5, 32.1``."""
    lowest = [curve.lowest(measure) for curve in seeds]
    values = [f"{value:#.4g}" if math.isfinite(value) else "diverged" for value in lowest]
    return f"{seeds[0].what}: {', '.join(values)}"


def plot(curves: Sequence[LearningCurve], measure: str, *, markers: bool = True) -> Any:
    """A picture of all curves, as a whole and in the second half; the legend, best first, shows
    the lowest values.
    """
    systems: dict[str, list[LearningCurve]] = {}
    for curve in sorted(curves, key=lambda curve: (curve.lowest(measure), curve.what, curve.seed)):
        systems.setdefault(curve.what, []).append(curve)
    height = max(4.4, 0.18 * len(systems) + 0.8)  # inches; a line of the legend per system
    figure, panels = pyplot().subplots(1, 2, figsize=(11, height), layout="constrained")
    styles = line_styles(systems)
    longest = max(n for curve in curves for n, _ in curve.finite(measure) or [(0, 0.0)])
    ends = {}
    for what, seeds in systems.items():
        ordered = sorted(seeds, key=lambda curve: curve.seed)
        for place, curve in enumerate(ordered):
            style = {**styles[what], "linestyle": _DASHES[place % len(_DASHES)], "linewidth": 1.2}
            style |= {"markersize": 3 if markers else 0}
            style |= {"label": "" if place else label(ordered, measure)}
            for panel, begin in zip(panels, (0, longest / 2), strict=True):
                points = [point for point in curve.finite(measure) if point[0] >= begin]
                (line,) = panel.plot([n for n, _ in points], [y for _, y in points], **style)
                line.set_gid(f"t:{label([curve], measure)}")
        last = seeds[0].finite(measure)
        if last and last[-1][0] >= longest / 2:
            ends[what] = last[-1][1], styles[what]["color"]
    panels[0].set_title("from the start, logarithmic")
    panels[1].set_title("the second half")
    for panel in panels:
        panel.set_xlabel("updates")
        panel.locator_params(axis="x", nbins=5)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.grid(alpha=0.3)
    panels[0].set_yscale("log")
    panels[0].yaxis.set_major_formatter(tick_text)
    panels[0].yaxis.set_minor_formatter(tick_text)
    panels[0].set(ylabel=MEASURES[measure][1])
    more = "\n(seeds in order: solid, dashed, ...)" if len(systems) < len(curves) else ""
    where = {"loc": "outside right center", "title": f"lowest {measure}{more}"}
    figure.legend(*panels[0].get_legend_handles_labels(), **where, fontsize=8)
    name_ends(panels[1], ends)
    return figure
