"""Translations by length and by place: a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..drawing import dashes, line_styles, pyplot
from ..evaluation.groups import BASELINE
from ..evaluation.lengths import TENTHS, Bucket, Estimate
from .by_length import Sheet

_SPREAD = 0.25  # of the distance between buckets, over which the marks of one are spread


def picture(sheets: Sequence[Sheet]) -> Any:
    """For each sheet the distance of BLEU from the baseline, whose own stands below, and the length
    ratio by length of the source, and word accuracy by tenth where it was counted. Without a
    baseline, BLEU.
    """
    plt = pyplot()
    columns = 3 if any(sheet.tenths for sheet in sheets) else 2
    shape = {"figsize": (4 * columns + 1, 4.2 * len(sheets)), "layout": "constrained"}
    figure, panels = plt.subplots(len(sheets), columns, squeeze=False, **shape)
    names = [name for sheet in sheets for name in sheet.asked]
    lines = dashes(names)
    styles = {
        name: {**style, "linestyle": lines[name]} for name, style in line_styles(names).items()
    }
    drawn: dict[str, Any] = {}
    for sheet, (bleu, ratio, *place) in zip(sheets, panels, strict=True):
        aside = _aside(sheet)
        for name, own in sheet.shown.items():
            first = sheet.gaps(name) if sheet.baselines else _each(own, "bleu")
            for panel, found in ((bleu, first), (ratio, _each(own, "ratio"))):
                parts = [part for part in sheet.parts if part.name in found]
                at = [part.mean_length + aside[name] for part in parts]
                drawn[name] = _curve(panel, at, [found[part.name] for part in parts], styles[name])
            for panel in place:
                _curve(panel, range(1, TENTHS + 1), sheet.tenths[name], styles[name])
        if sheet.baselines:
            bleu.axhline(0, color="black", linewidth=1)
        above = f"BLEU minus that of {BASELINE}" if sheet.baselines else "BLEU"
        at = [part.mean_length for part in sheet.parts]
        ticks = [part.name for part in sheet.parts]
        levels = _levels(sheet)
        lower = [f"{tick}\n{levels[tick]:.1f}" if levels else tick for tick in ticks]
        heads = f"{sheet.heads}; below, BLEU of {BASELINE}" if levels else sheet.heads
        for panel, title, label, own_ticks in (
            (bleu, above, heads, lower),
            (ratio, "length ratio", sheet.heads, ticks),
        ):
            panel.set(title=title, xlabel=label)
            panel.set_xticks(at, own_ticks, fontsize=8)
            if sheet.trained_to and sheet.trained_to <= panel.get_xlim()[1]:
                drawn["longest of training"] = panel.axvline(
                    sheet.trained_to, color="gray", linestyle=":", linewidth=1
                )
        for panel in place:
            panel.set(title="word accuracy, %", xlabel="tenth of the reference")
        bleu.set_ylabel(sheet.title)
        for panel in (bleu, ratio, *place):
            panel.grid(alpha=0.3)
    figure.legend(drawn.values(), drawn, loc="outside right upper", fontsize=8)
    figure.supxlabel(
        "bars: 95 % intervals over the sentences; of several seeds the mean", fontsize=9
    )
    return figure


def _levels(sheet: Sheet) -> dict[str, float]:
    """BLEU of the baseline by part; nothing where there are several baselines, or none."""
    own = [sheet.buckets[name] for name in {*sheet.baselines.values()}]
    if len(own) != 1 or len(own[0]) < len(sheet.parts):
        return {}
    return {part: bucket.bleu.value for part, bucket in own[0].items()}


def _aside(sheet: Sheet) -> dict[str, float]:
    """How far to the right of its place each system's mark stands, so that bars do not hide one
    another.
    """
    places = [part.mean_length for part in sheet.parts]
    gaps = [after - before for before, after in pairwise(places)]
    width = _SPREAD * min(gaps, default=0.0)
    count = len(sheet.asked)
    return {name: width * ((number + 0.5) / count - 0.5) for number, name in enumerate(sheet.asked)}


def _each(buckets_of: Mapping[str, Bucket], measure: str) -> dict[str, Estimate]:
    """A measure by part."""
    return {part: getattr(bucket, measure) for part, bucket in buckets_of.items()}


def _curve(panel: Any, at: Sequence[float], found: Sequence[Estimate], look: dict[str, str]) -> Any:
    values = [each.value for each in found]
    # Resamples of few sentences may all lie to one side.
    below = [max(each.value - each.low, 0) for each in found]
    above = [max(each.high - each.value, 0) for each in found]
    style = {"markersize": 4, "linewidth": 1, "elinewidth": 0.5}
    return panel.errorbar(at, values, yerr=[below, above], **look, **style)
