"""Pictures of results: sections of the leaderboard, and learning curves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..evaluation.curves import MEASURES, LearningCurve, read_training
from ..evaluation.groups import BASELINE, Line
from ..evaluation.hypotheses import Sentences
from ..evaluation.json_rows import read_rows, write_rows
from ..evaluation.lengths import Part, parts_of, resampled_bleu
from ..evaluation.scores import Floats
from ..system.errors import UserError
from .sections import Section, Standing
from .style import (
    FAMILIES,
    drawn,
    line_styles,
    name_ends,
    pyplot,
    save,
    tick_text,
)

_BUCKETS = 5  # of source lengths
_DASHES = ("-", "--", ":", "-.")  # of the seeds of a system
_SUPERFLUOUS = re.compile(  # in SVG: what the page sets, and what is without effect
    r"<metadata>.*?</metadata>|<style.*?</style>|<clipPath.*?</clipPath>|<!--.*?-->"
    r'| clip-path="[^"]*"| transform="rotate\(-0 [^"]*"| font-family: [^;"]*;'
    r"| stroke-line\w+: \w+;?",
    re.DOTALL,
)


@dataclass(frozen=True)
class ByLength:
    """BLEU by source length: of each line and part the value, and 1,000 resamples."""

    lines: Sequence[Line]
    parts: Sequence[Part]
    bleu: Floats  # (lines, parts)
    samples: Floats  # (lines, parts, 1,000)


def by_length(section: Section, counts: Sentences) -> ByLength | None:
    """Of the counted systems; None for fewer than two systems or parts."""
    texts = counts.texts.get(section.group.conditions.references_sha256)
    lengths = texts.source_lengths if texts else []
    parts = parts_of(lengths, count=_BUCKETS) if lengths else []
    lines = [line for line in section.group.lines if counts.is_counted(line.results)]
    if len(parts) < 2 or len(lines) < 2:
        return None
    values, samples = [], []
    for line in lines:
        statistics = [counts.statistics(result) for result in line.results]
        own = [resampled_bleu([s[list(part.members)] for s in statistics]) for part in parts]
        values.append([value for value, _ in own])
        samples.append([sample for _, sample in own])
    return ByLength(lines, parts, np.array(values), np.array(samples))


def _short(name: str) -> str:
    """A name without its architecture in brackets."""
    return name.partition(" (")[0]


def _draw_intervals(axes: Any, section: Section, standings: Sequence[Standing]) -> None:
    for y, each in enumerate(standings):
        _, color = FAMILIES[each.family]
        if each.line:
            how = {"fmt": "o", "color": color, "markersize": 5, "capsize": 2.5, "linewidth": 1}
            bar = axes.errorbar(each.line.bleu, y, xerr=each.half_width, **how)
            bar.lines[0].set_gid(f"t:{each.name}: {each.line.bleu:.2f} ± {each.half_width:.2f}")
            seeds = [result.bleu for result in each.line.results if each.line.several_seeds]
            axes.scatter(seeds, [y] * len(seeds), s=9, facecolor="none", edgecolor=color, zorder=3)
            place = {"xy": (1.01, y), "xycoords": ("axes fraction", "data"), "va": "center"}
            axes.annotate(f"{each.line.bleu:.2f}", **place, fontsize=8)
        if each.published:
            axes.scatter(each.published, y, marker="D", facecolor="none", edgecolor="black")
    for y, (above, below) in enumerate(pairwise(standings)):
        if below.cluster and above.cluster != below.cluster:
            axes.axhline(y + 0.5, color="0.5", linewidth=0.8)
    if section.group.baseline and section.group.baseline in section.group.lines:
        axes.axvline(section.group.baseline.bleu, color="0.5", linewidth=0.8, linestyle="--")
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


def _draw_lengths(axes: Any, section: Section, data: ByLength) -> None:
    styles = line_styles((line.name for line in data.lines), dashed=True)
    ends = {}
    for line, values in zip(data.lines, data.bleu, strict=True):
        strong = line in (data.lines[0], data.lines[-1]) or line.system == BASELINE
        how = {**styles[line.name], "markersize": 3, "linewidth": 1.8 if strong else 0.8}
        (curve,) = axes.plot(range(len(values)), values, **how)
        curve.set_gid(f"t:{line.name}: {', '.join(f'{value:.1f}' for value in values)}")
        ends[line] = values[-1], styles[line.name]["color"]
    axes.set_xticks(range(len(data.parts)), [part.name for part in data.parts])
    axes.set_xlabel("words of the source", fontsize=8)
    axes.set_ylabel("BLEU", fontsize=8)
    first = sorted(data.lines, key=lambda line: line.system != BASELINE)
    name_ends(axes, {_short(line.name): ends[line] for line in first})


class Picture(NamedTuple):
    """A kind of picture: what it draws of a section (falsy: nothing), and how."""

    title: str
    data: Callable[[Section, Sentences], Any]
    draw: Callable[[Any, Section, Any], None]
    inches: Callable[[Any], float] = lambda _: 3.6


PICTURES: Mapping[str, Picture] = {
    "intervals": Picture(
        "BLEU", lambda s, _: s.standings, _draw_intervals, lambda shown: 1.0 + 0.2 * len(shown)
    ),
    "lengths": Picture("Short and long sentences", by_length, _draw_lengths),
}


def picture_of(name: str, sections: Sequence[Section], counts: Sentences) -> Any:
    """A kind of picture of all sections that have it, one below the other; None where none has."""
    data_of = PICTURES[name].data
    shown = [(each, data) for each in sections if (data := data_of(each, counts))]
    return panels_of(name, shown) if shown else None


def panels_of(name: str, shown: Sequence[tuple[Section, Any]], *, titles: bool = True) -> Any:
    """A kind of picture of sections with their data, one below the other."""
    picture = PICTURES[name]
    heights = [picture.inches(data) for _, data in shown]
    figure, panels = pyplot().subplots(
        len(shown), 1, figsize=(7, sum(heights)), height_ratios=heights, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for (section, data), (axes,) in zip(shown, panels, strict=True):
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=8)
        if titles:
            axes.set_title(section.group.conditions.heading, loc="left", fontsize=9)
        picture.draw(axes, section, data)
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


def draw(logs: Sequence[Path], out: Path, kind: str, measure: str) -> None:
    """Writes OUT.jsonl, and the picture OUT.KIND of a measure.

    ``logs``: folders of trainings, their logs, or such curves; the last one of a command counts.
    Perplexities of masked language models are comparable between systems, not between seeds:
    fairseq draws the masks of validation from ``--seed``, and always as in epoch 1.
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
    first = curves[0]
    for curve in curves:
        for name, value in first.settings.items():
            other = curve.settings.get(name, value)  # absent in older rows
            if other != value:
                raise UserError(
                    f"not comparable: {name} is {value} for {first.arch}, {other} for {curve.arch}"
                )
    write_rows(out.with_name(f"{out.name}.jsonl"), curves)
    save(plot(curves, measure), out.with_name(f"{out.name}.{kind}"))


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
    for panel, title in zip(
        panels, ("from the start, logarithmic", "the second half"), strict=True
    ):
        panel.set(xlabel="updates", title=title)
        panel.locator_params(axis="x", nbins=5)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.grid(alpha=0.3)
    panels[0].set_yscale("log")
    panels[0].yaxis.set_major_formatter(tick_text)
    panels[0].yaxis.set_minor_formatter(tick_text)
    panels[0].set(ylabel=MEASURES[measure][1], title="from the start, logarithmic")
    panels[1].set_title("the second half")
    handles, names = panels[0].get_legend_handles_labels()
    title = f"lowest {measure}"
    if len(systems) < len(curves):
        title += "\n(seeds in order: solid, dashed, ...)"
    figure.legend(handles, names, loc="outside right center", title=title, fontsize=8)
    name_ends(panels[1], ends)
    return figure
