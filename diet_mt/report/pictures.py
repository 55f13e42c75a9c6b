"""Pictures of sections of the leaderboard, and SVG inside a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from .claims import Evidence
from .sections import Section
from .style import FAMILIES, color_of, drawn, pyplot

_SUPERFLUOUS = re.compile(  # in SVG: styles set by the page, and attributes without effect
    r"<metadata>.*?</metadata>|<style.*?</style>|<clipPath.*?</clipPath>|<!--.*?-->"
    r'| clip-path="[^"]*"| transform="rotate\(-0 [^"]*"| font-family: [^;"]*;'
    r"| stroke-line\w+: \w+;?",
    re.DOTALL,
)
# In figure 1, of systems of translation and of encoders.
INPUT = ("sinusoidal", "learned input")
SUMMARY = {"diet_abs": "absolute (DIET-ABS)", "diet_rel": "relative (DIET-REL)"}


def _short(name: str) -> str:
    """A name without its architecture in brackets."""
    return name.partition(" (")[0]


def intervals(sections: Sequence[Section], *, titles: bool = True) -> Any:
    """BLEU of every system, with its interval; sections one below the other."""
    heights = [1.0 + 0.2 * len(section.standings) for section in sections]
    figure, panels = pyplot().subplots(
        len(sections), 1, figsize=(7, sum(heights)), height_ratios=heights, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for section, (axes,) in zip(sections, panels, strict=True):
        if titles:
            axes.set_title(section.group.conditions.heading, loc="left", fontsize=9)
        _draw_intervals(axes, section)
    return figure


def _draw_intervals(axes: Any, section: Section) -> None:
    standings, baseline = section.standings, section.group.baseline
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=8)
    for y, each in enumerate(standings):
        _, color = FAMILIES[each.family]
        if each.line:
            how = {"fmt": "o", "color": color, "markersize": 5, "capsize": 2.5, "linewidth": 1}
            bar = axes.errorbar(each.line.bleu, y, xerr=each.half_width, **how)
            bar.lines[0].set_gid(f"t:{each.name}: {each.line.bleu:.2f} ± {each.half_width:.2f}")
            seeds = [result.bleu for result in each.line.results]
            if len(seeds) > 1:
                seed = {"s": 9, "facecolor": "none", "edgecolor": color, "zorder": 3}
                axes.scatter(seeds, [y] * len(seeds), **seed)
            place = {"xy": (1.01, y), "xycoords": ("axes fraction", "data"), "va": "center"}
            axes.annotate(f"{each.line.bleu:.2f}", **place, fontsize=8)
        if each.published:
            axes.scatter(each.published, y, marker="D", facecolor="none", edgecolor="black")
    for y, (above, below) in enumerate(pairwise(standings)):
        if below.cluster and above.cluster != below.cluster:
            axes.axhline(y + 0.5, color="0.5", linewidth=0.8)
    if baseline and baseline in section.group.lines:
        axes.axvline(baseline.bleu, color="0.5", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(standings)), [_short(each.name) for each in standings], fontsize=8)
    axes.set_ylim(len(standings) - 0.5, -0.5)
    axes.set_xlabel("BLEU and its 95 % interval; rings: seeds; diamonds: the paper", fontsize=8)
    shown = {each.family for each in standings}
    point = {"marker": "o", "linestyle": "", "markersize": 5}
    patches = [
        pyplot().Line2D([], [], **point, color=color, label=text)
        for name, (text, color) in FAMILIES.items()
        if name in shown
    ]
    axes.legend(handles=patches, fontsize=7, loc="best", frameon=False)


def summary(every: Sequence[Evidence]) -> Any:
    """Chen et al. 2021, figure 1: absolute and relative positions per head, above those at the
    input, by benchmark; hollow bars are the paper's.
    """
    of_input = [each for each in every if each.pair[1] in INPUT]
    gains = {(each.data, each.pair[0].split()[0].replace("-", "_")): each for each in of_input}
    data = list(dict.fromkeys(each.data for each in of_input))
    figure, axes = pyplot().subplots(figsize=(7, 1.2 + 0.6 * len(data)), layout="constrained")
    handles = []
    for place, (system, label) in enumerate(SUMMARY.items()):
        ours = {"facecolor": color_of(system), "edgecolor": color_of(system)}
        paper = {**ours, "facecolor": "none"}
        handles.append(pyplot().Rectangle((0, 0), 1, 1, **ours, label=label))
        handles.append(pyplot().Rectangle((0, 0), 1, 1, **paper, label=f"{label}, paper"))
        error = {"ecolor": "0.25", "capsize": 2.5, "error_kw": {"linewidth": 1}}
        for row, name in enumerate(data):
            if each := gains.get((name, system)):
                low = row - 0.27 + 0.36 * place
                how = {"xerr": each.half, **error} if each.half else {}
                axes.barh(low, each.value, height=0.17, **ours, **how)
                if each.paper is not None:
                    axes.barh(low + 0.18, each.paper, height=0.17, **paper)
    axes.axvline(0, color="0.25", linewidth=0.8)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    axes.set_yticks(range(len(data)), data, fontsize=8)
    axes.set_ylim(len(data) - 0.5, -0.5)
    axes.set_xlabel(
        "points above positions at the input, with 95 % intervals; the paper's translation: WMT18",
        fontsize=8,
    )
    axes.legend(handles=handles, fontsize=7, loc="best", frameon=False)
    return figure


def inline(figure: Any, label: str) -> str:
    """A picture as SVG inside HTML: in the page's font, with tooltips, without background."""
    text = drawn(figure, "svg", transparent=True).decode()
    text = text[text.index("<svg") :]
    text = _SUPERFLUOUS.sub("", text)
    text = re.sub(r'<g id="t:([^"]*)">', r"<g><title>\1</title>", text)
    text = re.sub(r'="[^"]*"', lambda value: re.sub(r"(\.\d)\d+", r"\1", value[0]), text)
    used = set(re.findall(r"[\"(]#([\w-]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", text)
    text = re.sub(r"\s+", " ", text)
    for _ in range(4):  # groups of one element
        text = re.sub(r"<g> (<(?:path|use)[^>]*> ?|<text[^>]*>[^<]*</text> )</g> ?", r"\1", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
