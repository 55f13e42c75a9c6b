"""Learning curves: validation perplexity or loss over the updates, one curve per training.

Perplexities of masked language models are comparable where the same sequences are masked in the
same way. fairseq draws the masks from ``--seed``, the sequence and the epoch, and always validates
with epoch 1, so the masks are the same throughout a training and for all systems, but differ
between seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..evaluation.curves import MEASURES, LearningCurve, read_training
from ..evaluation.json_rows import read_rows, write_rows
from .style import line_styles, name_ends, pyplot, save, tick_text

DASHES = ("-", "--", ":", "-.")  # of the seeds of a system


def draw(logs: Sequence[Path], out: Path, kind: str, measure: str) -> None:
    """Writes OUT.jsonl, and the picture OUT.KIND of a measure.

    ``logs``: folders of trainings, their logs, or such curves; the last one of a command counts.
    Raises UserError.
    """
    by_command: dict[str, LearningCurve] = {}
    for path in logs:
        if path.suffix == ".jsonl":
            read = read_rows(LearningCurve, path)
        else:
            read = [read_training(path if path.is_dir() else path.parent)]
        by_command.update((curve.key, curve) for curve in read)
    curves = list(by_command.values())
    if not curves:
        raise UserError(f"{logs[0]}: no curves")
    check_comparable(curves)
    write_rows(out.with_name(f"{out.name}.jsonl"), curves)
    save(plot(curves, measure), out.with_name(f"{out.name}.{kind}"))


def check_comparable(curves: Sequence[LearningCurve]) -> None:
    """Raises UserError for different validation data, masking or losses."""
    first = curves[0]
    for curve in curves[1:]:
        for name, value in first.settings.items():
            other = curve.settings.get(name, value)  # absent in older rows
            if other != value:
                raise UserError(
                    f"not comparable: {name} is {value} for {first.arch}, {other} for {curve.arch}"
                )


def label(seeds: Sequence[LearningCurve], measure: str) -> str:
    """Of the seeds of a system: ``diet_rel: 31.5, 32.1``."""
    lowest = [curve.lowest(measure) for curve in seeds]
    values = [f"{value:#.4g}" if math.isfinite(value) else "diverged" for value in lowest]
    return f"{seeds[0].what}: {', '.join(values)}"


def plot(curves: Sequence[LearningCurve], measure: str, *, markers: bool = True) -> Any:
    """A picture of all curves from the start and in the second half; the legend, best first, has
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
        for (place, curve), (panel, begin) in product(
            enumerate(ordered), zip(panels, (0, longest / 2), strict=True)
        ):
            seen = [(n, value) for n, value in curve.finite(measure) if n >= begin]
            style = {**styles[what], "linestyle": DASHES[place % len(DASHES)]}
            name = "" if place else label(ordered, measure)
            xs, ys = zip(*seen, strict=True) if seen else ((), ())
            (line,) = panel.plot(
                xs, ys, markersize=3 if markers else 0, linewidth=1.2, label=name, **style
            )
            line.set_gid(f"t:{label([curve], measure)}")
        last = seeds[0].finite(measure)
        if last and last[-1][0] >= longest / 2:
            ends[what] = last[-1][1], styles[what]["color"]
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
    name_ends(panels[1], ends)
    handles, names = panels[0].get_legend_handles_labels()
    title = f"lowest {measure}"
    if len(systems) < len(curves):
        title += "\n(seeds in order: solid, dashed, ...)"
    figure.legend(handles, names, loc="outside right center", title=title, fontsize=8)
    return figure
