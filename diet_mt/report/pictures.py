"""Pictures of sections of the leaderboard, drawn by matplotlib."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..evaluation.groups import BASELINE, Line, encoding_of
from ..evaluation.hypotheses import Sentences
from ..evaluation.json_rows import read_dicts
from ..evaluation.lengths import Part, parts_of, resampled_bleu
from ..evaluation.scores import Floats
from .sections import Section, Standing
from .style import FAMILIES, drawn, family_of, line_styles, name_ends, pyplot

_BUCKETS = 5  # of source lengths
_LEAST = 3  # points of a picture
_LETTER, _LINE = 5.2, 10.0  # size of a name's letters, in pixels


class Speeds(NamedTuple):
    """One run of the decoding benchmark: encoding -> median and quartiles of sentences/s."""

    where: str
    of: Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True)
class Sidecars:
    """Files next to the rows; ``speeds``: by size of the models and corpus."""

    counts: Sentences = field(default_factory=lambda: Sentences({}, {}))
    speeds: Mapping[tuple[str, str], Speeds] = field(default_factory=dict)


def read_speeds(folders: Sequence[Path]) -> dict[tuple[str, str], Speeds]:
    """Of each size and corpus the run of ``benchmark/*.jsonl`` that timed most encodings."""
    kinds: dict[str, type] = dict.fromkeys(("size", "system", "measure", "machine"), str)
    kinds |= {"median": float, "low": float, "high": float, "threads": int}
    more = dict.fromkeys(("positions", "command", "device", "precision", "revision"), str)
    runs: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("benchmark/*.jsonl"))):
        for row in read_dicts(path, kinds, more):
            if row["measure"] == "decode" and row.get("positions"):
                how = [row.get(name, "") for name in ("command", "device", "precision")]
                runs.setdefault((row["size"], *how, path), []).append(row)
    best: dict[tuple[str, str], Speeds] = {}
    for run in runs.values():
        first, command = run[0], run[0].get("command", "")
        data = [Path(value) for value in re.findall(r"--data[ =](\S+)", command)]
        corpora = [each.parent.name if each.name == "bin" else each.name for each in data]
        if not corpora:
            continue
        of = {row["positions"]: (row["median"], row["low"], row["high"]) for row in run}
        parts = [corpora[0], first["machine"], f"{first['threads']} threads"]
        parts += [f"revision {first['revision']}"] if first.get("revision") else []
        trained = {each.partition("=")[0] for each in re.findall(r"--checkpoint[ =](\S+)", command)}
        if any(row["system"] not in trained for row in run):
            few = ", ".join(sorted(trained))
            parts.append(f"random weights except for {few}" if few else "random weights")
        if length := first.get("decode_length"):
            parts.append(f"translations of {length} tokens")
        key = first["size"], corpora[0]
        if key not in best or len(of) > len(best[key].of):
            best[key] = Speeds(", ".join(parts), of)
    return best


class Point(NamedTuple):
    """A system: its cost along the horizontal axis, with quartiles, and its BLEU."""

    line: Line
    x: float
    low: float
    high: float


class Points(NamedTuple):
    """A scatter plot; ``label``: of the horizontal axis."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True)
class ByLength:
    """BLEU by source length: of each line and part the value, and 1,000 resamples."""

    lines: Sequence[Line]
    parts: Sequence[Part]
    bleu: Floats  # (lines, parts)
    samples: Floats  # (lines, parts, 1,000)


def by_length(section: Section, sidecars: Sidecars) -> ByLength | None:
    """Of the counted systems; None for fewer than two systems or parts."""
    counts = sidecars.counts
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


def _speeds(section: Section, sidecars: Sidecars) -> Points | None:
    conditions = section.group.conditions
    speeds = sidecars.speeds.get((conditions.size, conditions.corpus))
    if speeds is None:
        return None
    encodings = [(line, encoding_of(line.results[0])) for line in section.group.lines]
    points = [Point(line, *speeds.of[key]) for line, key in encodings if key in speeds.of]
    label = f"decoded sentences/s, median and quartiles\n{speeds.where}"
    return Points(label, points) if len(points) >= _LEAST else None


def _sizes(section: Section, _: Sidecars) -> Points | None:
    counts = [(line, max(each.parameters for each in line.results)) for line in section.group.lines]
    if len(counts) < _LEAST or len({count for _, count in counts}) < 2:
        return None
    return Points("parameters", [Point(line, count, count, count) for line, count in counts])


def _standings(section: Section, _: Sidecars) -> Sequence[Standing]:
    return section.standings


def _family(line: Line | None, name: str = "") -> str:
    return family_of(line.results[0].encoding if line else name)


def _color(line: Line | None, name: str = "") -> str:
    return FAMILIES[_family(line, name)][1]


def _short(name: str) -> str:
    """A name without its architecture in brackets."""
    return name.partition(" (")[0]


def _draw_intervals(axes: Any, section: Section, standings: Sequence[Standing]) -> None:
    for y, each in enumerate(standings):
        color = _color(each.line, each.name)
        if each.line:
            how = {"fmt": "o", "color": color, "markersize": 5, "capsize": 2.5, "linewidth": 1}
            bar = axes.errorbar(each.line.bleu, y, xerr=each.half_width, **how)
            bar.lines[0].set_gid(f"t:{each.name}: {each.line.bleu:.2f} ± {each.half_width:.2f}")
            seeds = [result.bleu for result in each.line.results if each.line.several_seeds]
            axes.scatter(seeds, [y] * len(seeds), s=9, facecolor="none", edgecolor=color, zorder=3)
            place = {"xy": (1.01, y), "xycoords": ("axes fraction", "data"), "va": "center"}
            axes.annotate(f"{each.line.bleu:.2f}", **place, fontsize=8)
        if each.published:
            axes.scatter(each.published.bleu, y, marker="D", facecolor="none", edgecolor="black")
    for y, (above, below) in enumerate(pairwise(standings)):
        if below.cluster and above.cluster != below.cluster:
            axes.axhline(y + 0.5, color="0.5", linewidth=0.8)
    if section.group.baseline and section.group.baseline in section.group.lines:
        axes.axvline(section.group.baseline.bleu, color="0.5", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(standings)), [_short(each.name) for each in standings], fontsize=8)
    axes.set_ylim(len(standings) - 0.5, -0.5)
    axes.set_xlabel("BLEU and its 95 % interval; rings: seeds; diamonds: the paper", fontsize=8)
    _legend(axes, [_family(each.line, each.name) for each in standings])


def _legend(axes: Any, families: Sequence[str]) -> None:
    patches = [
        pyplot().Line2D([], [], marker="o", linestyle="", markersize=5, color=color, label=text)
        for name, (text, color) in FAMILIES.items()
        if name in families
    ]
    axes.legend(handles=patches, fontsize=7, loc="best", frameon=False)


def _draw_points(axes: Any, _: Section, data: Points) -> None:
    label, points = data
    for line, x, low, high in points:
        how = {"fmt": "o", "color": _color(line), "markersize": 5, "linewidth": 1}
        bar = axes.errorbar(x, line.bleu, xerr=[[x - low], [high - x]], **how)
        bar.lines[0].set_gid(f"t:{line.name}: {line.bleu:.2f} BLEU, {x:,.5g}")
    axes.margins(x=0.12)
    axes.figure.draw_without_rendering()  # lays out the axes
    taken: list[tuple[float, float, float, float]] = []
    places = [axes.transData.transform((point.x, point.line.bleu)) for point in points]
    taken += [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    ranked = sorted(zip(places, points, strict=True), key=lambda p: p[1].line.system != BASELINE)
    for (x, y), point in ranked:
        width = _LETTER * len(_short(point.line.name))
        box = x + 5, y - _LINE / 2, x + 5 + width, y + _LINE / 2
        free = all(box[0] > b[2] or box[2] < b[0] or box[1] > b[3] or box[3] < b[1] for b in taken)
        if free and box[2] < axes.bbox.x1:
            taken.append(box)
            how = {"xytext": (5, 0), "textcoords": "offset pixels", "va": "center", "fontsize": 7}
            axes.annotate(_short(point.line.name), (point.x, point.line.bleu), **how)
    axes.set_xlabel(label, fontsize=8)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x / 1e6:g} M" if x >= 1e6 else f"{x:g}")
    axes.set_ylabel("BLEU", fontsize=8)
    _legend(axes, [_family(point.line) for point in points])


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
    data: Callable[[Section, Sidecars], Any]
    draw: Callable[[Any, Section, Any], None]
    inches: Callable[[Any], float] = lambda _: 3.6


PICTURES: Mapping[str, Picture] = {
    "intervals": Picture("BLEU", _standings, _draw_intervals, lambda shown: 1.0 + 0.2 * len(shown)),
    "speed": Picture("Quality and speed", _speeds, _draw_points),
    "parameters": Picture("Quality and size", _sizes, _draw_points),
    "lengths": Picture("Short and long sentences", by_length, _draw_lengths),
}


def picture_of(
    name: str, sections: Sequence[Section], sidecars: Sidecars, *, titles: bool = True
) -> Any:
    """A kind of picture of all sections that have it, one below the other; None where none has."""
    picture = PICTURES[name]
    shown = [(each, data) for each in sections if (data := picture.data(each, sidecars))]
    if not shown:
        return None
    heights = [picture.inches(data) for _, data in shown]
    figure, panels = pyplot().subplots(
        len(shown), 1, figsize=(7, sum(heights)), height_ratios=heights, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for (section, data), (axes,) in zip(shown, panels, strict=True):
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=8)
        picture.draw(axes, section, data)
        if titles:
            axes.set_title(section.group.conditions.heading, loc="left", fontsize=9)
    return figure


def inline(figure: Any, label: str) -> str:
    """A picture as SVG inside HTML: in the page's font, with tooltips, without background."""
    text = drawn(figure, "svg", transparent=True).decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r" font-family: [^;\"]*;| transform=\"rotate\(-0 [^\"]*\"", "", text)
    text = re.sub(r'<g id="t:([^"]*)">', r"<g><title>\1</title>", text)
    text = re.sub(r'="[^"]*"', lambda value: re.sub(r"(\.\d)\d+", r"\1", value[0]), text)
    used = set(re.findall(r"[\"(]#([\w-]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", text)
    text = re.sub(r"\n\s*", " ", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
