"""Learning curves: validation perplexity or loss over the updates, one for each training.

Perplexities of masked language models are comparable where the validation text is masked alike.
fairseq draws the masks from ``--seed``, the number of the sequence and epoch 1, so they are the
same throughout a training and for all systems of a seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..drawing import line_styles, pyplot, save, tick_text
from ..errors import UserError
from ..evaluation.curves import MEASURES, LearningCurve, read_training
from ..evaluation.json_rows import read_rows, write_rows

DASHES = ("-", "--", ":", "-.")  # of the seeds of a system


def draw(logs: Sequence[Path], out: Path, kind: str, measure: str) -> None:
    """Writes the curves to OUT.jsonl and their picture to OUT.KIND.

    ``logs``: folders of trainings, their logs, or files that this wrote; of two curves of one
    command the last. Raises UserError.
    """
    curves: dict[str, LearningCurve] = {}
    for path in logs:
        if path.suffix == ".jsonl":
            read = read_rows(LearningCurve, path)
        else:
            read = [read_training(path if path.is_dir() else path.parent)]
        curves.update((curve.key, curve) for curve in read)
    if not curves:
        raise UserError(f"{logs[0]}: no curves")
    check_comparable([*curves.values()])
    rows = out.with_name(f"{out.name}.jsonl")
    write_rows(rows, curves.values())
    save(plot([*curves.values()], measure), out.with_name(f"{out.name}.{kind}"), rows=[rows])


def check_comparable(curves: Sequence[LearningCurve]) -> None:
    """Raises UserError for curves of other validation sequences, masks or losses."""
    first = curves[0]
    for curve in curves[1:]:
        for name, value in first.settings.items():
            other = curve.settings.get(name, value)
            if other != value:
                raise UserError(
                    f"{name} is {value} for {first.arch} and {other} for {curve.arch}: not "
                    "comparable; draw them apart"
                )


def label(seeds: Sequence[LearningCurve], measure: str) -> str:
    """The lowest value of each seed: ``diet_rel: 31.5, 32.1``."""
    lowest = [curve.lowest(measure) for curve in seeds]
    values = [f"{value:#.4g}" if math.isfinite(value) else "diverged" for value in lowest]
    return f"{seeds[0].what}: {', '.join(values)}"


def plot(curves: Sequence[LearningCurve], measure: str) -> Any:
    """All curves, and their second half on a scale of its own; the best system first."""
    plt = pyplot()
    systems: dict[str, list[LearningCurve]] = {}
    for curve in sorted(curves, key=lambda curve: (curve.lowest(measure), curve.what)):
        systems.setdefault(curve.what, []).append(curve)
    height = max(4.4, 0.18 * len(systems) + 0.8)  # inches; the legend has a line for each
    figure, panels = plt.subplots(1, 2, figsize=(11, height), layout="constrained")
    styles = line_styles(systems)
    longest = max(n for curve in curves for n, _ in curve.finite(measure) or [(0, 0.0)])
    for what, own in systems.items():
        seeds = sorted(own, key=lambda curve: curve.seed)
        for panel, start in zip(panels, (0, longest / 2), strict=True):
            for place, curve in enumerate(seeds):
                points = [point for point in curve.finite(measure) if point[0] >= start]
                panel.plot(
                    *(zip(*points, strict=True) if points else ([], [])),
                    **styles[what], linestyle=DASHES[place % len(DASHES)],
                    markersize=3, linewidth=1.2, label="" if place else label(seeds, measure),
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
    title = f"lowest {measure}"
    if len(systems) < len(curves):
        title += "\n(seeds in order: solid, dashed, ...)"
    legend = panels[0].get_legend_handles_labels()
    figure.legend(*legend, loc="outside right center", title=title, fontsize=8)
    return figure
