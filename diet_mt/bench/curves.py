"""Validation perplexity or loss over the updates, drawn: a curve for each training.

Perplexities of masked language models are comparable where the validation text is masked in the
same way. fairseq draws the masks from ``--seed``, the number of the sequence and the epoch, and
validates with epoch 1 always, so they are the same throughout a training and for all systems; but
not for other sequences, another seed, or another distribution of fairseq. Other sequences are
refused, another seed is said.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ..drawing import line_styles, pyplot, save, tick_text
from ..errors import UserError
from ..evaluation.curves import MEASURES, LearningCurve, read_training
from ..evaluation.json_rows import read_rows, write_rows

DASHES = ("-", "--", ":", "-.")  # of the seeds of a system
_NAME_POINTS = 8  # from one name at the end of a curve to the next
_AROUND = 1.0  # inches above and below a panel


def draw(logs: Sequence[Path], out: Path, kind: str, measure: str) -> None:
    """Writes OUT.jsonl, and the picture OUT.KIND of a measure.

    ``logs``: folders of trainings, their logs, or curves that this wrote; the last one of a command
    counts. Raises UserError.
    """
    by_command: dict[str, LearningCurve] = {}
    for path in logs:
        if path.suffix == ".jsonl":
            found = read_rows(LearningCurve, path)
        else:
            found = [read_training(path if path.is_dir() else path.parent)]
        by_command.update((curve.key, curve) for curve in found)
    curves = list(by_command.values())
    if not curves:
        raise UserError(f"{logs[0]}: holds no curves")
    note = check_comparable(curves)
    if note:
        print(note, file=sys.stderr)
    rows = out.with_name(f"{out.name}.jsonl")
    write_rows(rows, curves)
    save(plot(curves, measure), out.with_name(f"{out.name}.{kind}"), rows=[rows])


def check_comparable(curves: Sequence[LearningCurve]) -> str:
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


def label(seeds: Sequence[LearningCurve], measure: str) -> str:
    """Of the seeds of a system: ``diet_rel: 31.5, 32.1``."""
    lowest = [curve.lowest(measure) for curve in seeds]
    values = [f"{value:#.4g}" if math.isfinite(value) else "diverged" for value in lowest]
    return f"{seeds[0].what}: {', '.join(values)}"


def plot(curves: Sequence[LearningCurve], measure: str) -> Any:
    """A picture of all curves, the best first in the legend, which gives the lowest values of each
    system.
    """
    plt = pyplot()
    systems: dict[str, list[LearningCurve]] = {}
    for curve in sorted(curves, key=lambda curve: (curve.lowest(measure), curve.what, curve.seed)):
        systems.setdefault(curve.what, []).append(curve)
    height = max(4.4, 0.18 * len(systems) + 0.8)  # inches; the legend has a line for each
    figure, panels = plt.subplots(1, 2, figsize=(11, height), layout="constrained")
    styles = line_styles(systems)
    longest = max(n for curve in curves for n, _ in curve.finite(measure) or [(0, 0.0)])
    for what, seeds in systems.items():
        ordered = sorted(seeds, key=lambda curve: curve.seed)
        for (place, curve), (panel, begin) in product(
            enumerate(ordered), zip(panels, (0, longest / 2), strict=True)
        ):
            seen = [(n, value) for n, value in curve.finite(measure) if n >= begin]
            panel.plot(
                *(zip(*seen, strict=True) if seen else ([], [])),
                **styles[what], linestyle=DASHES[place % len(DASHES)],
                markersize=3, linewidth=1.2,
                label="" if place else label(ordered, measure),
            )  # fmt: skip
    for panel in panels:
        panel.set_xlabel("updates")
        panel.locator_params(axis="x", nbins=5)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.grid(alpha=0.3)
    panels[0].set_yscale("log")
    panels[0].yaxis.set_major_formatter(tick_text)
    panels[0].yaxis.set_minor_formatter(tick_text)
    panels[0].set_ylabel(MEASURES[measure][1])
    panels[0].set_title("from the start, logarithmic")
    panels[1].set_title("the second half")
    _name_ends(
        panels[1],
        {what: (seeds[0], styles[what]["color"]) for what, seeds in systems.items()},
        measure,
    )
    handles, names = panels[0].get_legend_handles_labels()
    title = f"lowest {measure}"
    if len(systems) < len(curves):
        title += "\n(seeds in order: solid, dashed, ...)"
    figure.legend(handles, names, loc="outside right center", title=title, fontsize=8)
    return figure


def _name_ends(panel: Any, drawn: Mapping[str, tuple[LearningCurve, str]], measure: str) -> None:
    """Names beside a panel, at the height where their curves end; not of those that end nearer than
    a line to one that is named: the legend has all.
    """
    low, high = panel.get_ylim()
    inches = panel.figure.get_size_inches()[1] - _AROUND
    line = (high - low) * _NAME_POINTS / (72 * inches)
    heights: list[float] = []
    for what, (curve, color) in drawn.items():
        update, height = (curve.finite(measure) or [(0, math.nan)])[-1]
        seen = update >= panel.get_xlim()[0] and low <= height <= high
        if seen and all(abs(height - other) >= line for other in heights):
            heights.append(height)
            panel.annotate(
                what, (1.01, height), xycoords=("axes fraction", "data"),
                color=color, fontsize=_NAME_POINTS - 1, va="center",
            )  # fmt: skip
