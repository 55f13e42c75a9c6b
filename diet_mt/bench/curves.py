"""Validation perplexity or loss over the updates, a curve for each training.

Perplexities of masked language models are comparable where the validation text is masked in the
same way. fairseq draws the masks from ``--seed``, the number of the sequence and the epoch, and
validates with epoch 1 always, so they are the same throughout a training and for all systems; but
not for other sequences, another seed, or another distribution of fairseq. Other sequences are
refused, another seed is said.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Union

from ..drawing import DASHES, color_of, pyplot, save
from ..errors import UserError
from ..evaluation.commands import options_of, portable
from ..evaluation.json_rows import Row, read_rows, write_rows

# What decides which sequences are validated, how they are masked, and what the loss is.
_SAME = (
    *("data", "--task", "--tokens-per-sample", "--sample-break-mode", "--mask-prob"),
    *("--criterion", "--label-smoothing"),
)
# What can be drawn -> its place in a point, and its name.
MEASURES = {
    "perplexity": (2, "validation perplexity"),
    "loss": (1, "validation loss, bits of a subword"),
}
_LINE = re.compile(r"\| valid \| (.*)")
_PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")


@dataclass(frozen=True)
class Curve(Row):
    """One training. ``points``: [updates, loss in bits, perplexity]; None for what is no number."""

    system: str  # arch without roberta_ and its size
    arch: str
    segments: str
    seed: int
    parameters: int  # trained numbers; 0: unknown
    settings: dict[str, str]  # what must be the same for curves to be comparable
    points: list[list[Union[float, None]]]
    revision: str
    command: str
    name: str = ""  # of a variant of the system

    @property
    def what(self) -> str:
        """What is trained, in words."""
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

    Where a training was continued, updates come twice, and the later ones count.
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


def read_training(folder: Path) -> Curve:
    """The curve of a training. Raises UserError where its files are missing or hold none."""
    try:
        log = (folder / "train.log").read_text(encoding="utf-8", errors="replace")
        command = (folder / "command").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UserError(
            f"{error.filename}: cannot be read ({error.strerror}); give a folder that "
            "diet-mt train or pretrain has trained in"
        ) from None
    points = read_log(log)
    if not points:
        raise UserError(f"{folder / 'train.log'}: no validation in it; train on")
    given = options_of(command)
    options = {name: " ".join(words) for name, words in given.items()}
    options["data"] = "/".join(Path(*given.get("", [])[1:2]).parts[-2:])  # its folder's name
    revision = folder / "revision"
    parameters = _PARAMETERS.search(log)
    arch = options.get("--arch", "")
    system = arch.removeprefix("roberta_").rpartition("_")[0]
    seed = int(options.get("--seed", 1))
    named = folder.resolve().name.removesuffix(f".{seed}")
    return Curve(
        system=system,
        name=named if named.startswith(f"{system}.") else "",
        arch=arch,
        segments=options.get("--segment-encoding", "none"),
        seed=seed,
        parameters=int(parameters[1].replace(",", "")) if parameters else 0,
        settings={name.lstrip("-"): options.get(name, "") for name in _SAME},
        points=points,
        revision=revision.read_text(encoding="utf-8").strip() if revision.is_file() else "",
        command=portable(command),
    )


def draw(logs: Sequence[Path], out: Path, kind: str, measure: str) -> None:
    """Writes OUT.jsonl, and the picture OUT.KIND of a measure.

    ``logs``: folders of trainings, their logs, or curves that this wrote. Raises UserError.
    """
    curves: list[Curve] = []
    for path in logs:
        if path.suffix == ".jsonl":
            curves += read_rows(Curve, path)
        else:
            curves.append(read_training(path if path.is_dir() else path.parent))
    if not curves:
        raise UserError(f"{logs[0]}: holds no curves")
    note = check_comparable(curves)
    if note:
        print(note, file=sys.stderr)
    write_rows(out.with_name(f"{out.name}.jsonl"), curves)
    plot(curves, out.with_name(f"{out.name}.{kind}"), measure)


def check_comparable(curves: Sequence[Curve]) -> str:
    """What a reader must know about the curves; empty if nothing.

    Raises UserError where not all were validated on the same sequences, masked as often.
    """
    first = curves[0]
    for curve in curves[1:]:
        for name, value in first.settings.items():
            other = curve.settings.get(name, value)  # curves of before do not say all
            if other != value:
                raise UserError(
                    f"{name} is {value} for {first.arch} and {other} for {curve.arch}: they "
                    "cannot be compared; draw them apart"
                )
    seeds = sorted({curve.seed for curve in curves})
    if len(seeds) > 1 and first.settings.get("task") == "masked_lm":
        return f"seeds {', '.join(map(str, seeds))}: the masks differ from seed to seed"
    return ""


def label(seeds: Sequence[Curve], measure: str) -> str:
    """Of the seeds of a system: ``diet_rel: 31.5, 32.1``."""
    lowest = [curve.lowest(measure) for curve in seeds]
    values = [f"{value:#.4g}" if math.isfinite(value) else "diverged" for value in lowest]
    return f"{seeds[0].what}: {', '.join(values)}"


def plot(curves: Sequence[Curve], file: Path, measure: str) -> None:
    """All curves, the best first in the legend, which gives the lowest values of each system."""
    plt = pyplot()
    systems: dict[str, list[Curve]] = {}
    for curve in sorted(curves, key=lambda curve: (curve.lowest(measure), curve.what, curve.seed)):
        systems.setdefault(curve.what, []).append(curve)
    height = max(4.4, 0.18 * len(systems) + 0.8)  # inches; the legend has a line for each
    figure, panels = plt.subplots(1, 2, figsize=(11, height), layout="constrained")
    longest = max(n for curve in curves for n, _ in curve.finite(measure) or [(0, 0.0)])
    for what, seeds in systems.items():
        ordered = sorted(seeds, key=lambda curve: curve.seed)
        for (place, curve), (panel, begin) in product(
            enumerate(ordered), zip(panels, (0, longest / 2), strict=True)
        ):
            seen = [(n, value) for n, value in curve.finite(measure) if n >= begin]
            panel.plot(
                *(zip(*seen, strict=True) if seen else ([], [])),
                color=color_of(what), linestyle=DASHES[place % len(DASHES)],
                marker=".", markersize=4, linewidth=1.2,
                label="" if place else label(ordered, measure),
            )  # fmt: skip
    for panel in panels:
        panel.set_xlabel("updates")
        panel.locator_params(axis="x", nbins=5)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.grid(alpha=0.3)
    panels[0].set_yscale("log")
    for axis in (panels[0].yaxis.set_major_formatter, panels[0].yaxis.set_minor_formatter):
        axis(lambda value, _: f"{value:,.4g}")
    panels[0].set_ylabel(MEASURES[measure][1])
    panels[0].set_title("from the start, logarithmic")
    panels[1].set_title("the second half")
    handles, names = panels[0].get_legend_handles_labels()
    title = f"lowest {measure}"
    if len(systems) < len(curves):
        title += "\n(seeds in order: solid, dashed, ...)"
    figure.legend(handles, names, loc="outside right center", title=title, fontsize=8)
    save(figure, file)
