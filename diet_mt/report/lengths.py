"""BLEU and length ratio by source length or test set, from counts of sentences.

Intervals contain 95 % of 1,000 resamples of the sentences of a part. Resamples are the same for all
systems, so differences are paired. Several seeds of a system are averaged, also in each resample;
intervals do not cover the variance between seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..corpora.parallel import read_lines
from ..evaluation.groups import BASELINE, Conditions, Group, Line, group
from ..evaluation.hypotheses import Sentences, of_row, read_sentences
from ..evaluation.records import Result, read_results
from ..evaluation.scores import SEED, Floats, bleu, half_width
from ..system.errors import UserError
from ..system.files import sha256
from ..system.options import need_known
from .blocks import Block, Heading, Note, Table, number
from .style import line_styles, pyplot

LEAST = 100  # minimum number of sentences of a part
WIDTH = 5  # lengths of a part
BLEU, GAIN, RATIO = "BLEU", f"BLEU to {BASELINE}", "length ratio"
_FORMS = {BLEU: ".1f", GAIN: "+.1f", RATIO: ".3f"}
_SPREAD = 0.25  # width over which the marks of a part are spread, of the distance between parts
_LEGIBLE = 12  # maximum number of systems whose intervals are drawn


@dataclass(frozen=True)
class Part:
    """Sentences that are scored together."""

    name: str
    members: tuple[int, ...]  # numbers of the sentences, from 0
    mean_length: float  # of the sources

    @property
    def head(self) -> str:
        return f"{self.name} ({len(self.members)})"


def parts_of(
    lengths: Sequence[int], *, width: int = WIDTH, count: int = 0, least: int = LEAST
) -> list[Part]:
    """Parts of sentences by source length, the shortest first.

    Each part covers ``width`` lengths (1 to 5, 6 to 10, ...), or there are ``count`` parts of about
    equally many sentences. Parts of fewer than ``least`` sentences are merged with the next part,
    or the preceding one if last.
    """
    order = sorted(range(len(lengths)), key=lambda number: lengths[number])
    ends = [lengths[order[len(order) * k // count - 1]] for k in range(1, count)]

    def bucket(number: int) -> int:
        length = lengths[number]
        return sum(length > end for end in ends) if count else (length - 1) // width

    merged: list[list[int]] = []
    for _, members in groupby(order, key=bucket):
        if merged and len(merged[-1]) < least:
            merged[-1] += members
        else:
            merged.append(list(members))
    if len(merged) > 1 and len(merged[-1]) < least:
        merged[-2:] = [merged[-2] + merged[-1]]
    return [part_of(members, lengths) for members in merged]


def part_of(members: Sequence[int], lengths: Sequence[int], name: str = "") -> Part:
    """The part of sentences ``members``; ``name``: default the range of source lengths."""
    own = [lengths[number] for number in members]
    usual = "–".join(map(str, sorted({min(own), max(own)})))
    return Part(name or usual, tuple(sorted(members)), sum(own) / len(own))


@dataclass(frozen=True)
class Estimate:
    """A value, and its values on 1,000 resamples, (1,000,)."""

    value: float
    samples: Floats

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.value - other.value, self.samples - other.samples)

    @property
    def half_width(self) -> float:
        return half_width(self.samples)


@lru_cache(maxsize=8)
def _resamples(sentences: int, number: int = 1000) -> Any:
    """Number of times that each resample draws each sentence, (number, sentences)."""
    draw = np.random.default_rng(SEED)
    return draw.multinomial(sentences, np.full(sentences, 1 / sentences), size=number)


def estimate(seeds: Sequence[Floats], score: Callable[[Floats], Floats] = bleu) -> Estimate:
    """The mean score of the seeds. ``seeds``: statistics of each, (sentences, 10), as made by
    ``scores.counter``; ``score``: function of sums of statistics, (..., 10).
    """
    value = np.mean([score(statistics.sum(axis=0)) for statistics in seeds])
    weights = _resamples(len(seeds[0]))
    samples = np.mean([score(weights @ statistics) for statistics in seeds], axis=0)
    return Estimate(float(value), samples)


def _length_ratio(sums: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1])


@dataclass
class Sheet:
    """Systems shown in one table and picture."""

    title: str
    unit: str = ""  # of source lengths; empty if parts are test sets
    parts: list[Part] = field(default_factory=list)
    # Measure -> system -> name of a part -> value.
    values: dict[str, dict[str, dict[str, Estimate]]] = field(default_factory=dict)

    @property
    def heads(self) -> str:
        return f"lengths of the sources in {self.unit}" if self.unit else "test sets"

    def add(
        self, each: Group, counts: Sentences, parts: Sequence[Part], systems: Sequence[str] = ()
    ) -> None:
        """Adds parts of a test set; ``systems``: filter. Raises UserError for equal names."""
        if {part.name for part in parts} & {part.name for part in self.parts}:
            raise UserError(f"two test sets named {each.conditions.heading}; give one")
        self.parts = sorted([*self.parts, *parts], key=lambda part: part.mean_length)
        lines = [line for line in each.lines if line.system in systems or not systems]
        baseline = _estimates(each.baseline, counts, parts) if each.baseline else {}
        for line in lines:
            own = baseline if line is each.baseline else _estimates(line, counts, parts)
            if baseline and line is not each.baseline:
                bleu_of, others = own[BLEU], baseline[BLEU]
                own[GAIN] = {part: bleu_of[part] - others[part] for part in bleu_of}
            for measure, values in own.items():
                self.values.setdefault(measure, {}).setdefault(line.name, {}).update(values)


def _estimates(
    line: Line, counts: Sentences, parts: Sequence[Part]
) -> dict[str, dict[str, Estimate]]:
    """Measure (BLEU, length ratio) -> name of a part -> value of a system."""
    seeds = [counts.statistics(result) for result in line.results]
    own = {part.name: [each[list(part.members)] for each in seeds] for part in parts}
    return {
        BLEU: {name: estimate(statistics) for name, statistics in own.items()},
        RATIO: {name: estimate(statistics, _length_ratio) for name, statistics in own.items()},
    }


def sheets_of(
    files: Sequence[Path],
    *,
    systems: Sequence[str] = (),
    cut: Callable[[Sequence[int]], list[Part]] | None = None,
    references: Sequence[Path] = (),
    sources: Sequence[Path] = (),
) -> list[Sheet]:
    """A sheet for each group of comparable results or, without ``cut``, for groups that differ only
    in the test set. Raises UserError for sources that do not match the references.

    Args:
        systems: filter (default: all); the baseline is sinusoidal positions even if omitted.
        cut: source lengths -> parts; None: each test set is a part.
        sources: texts that determine source lengths, in tokens, and belong to ``references``
            (default: the decoded sources, in words).
    """
    if len(sources) != len(references):
        raise UserError(f"{len(sources)} --sources, but {len(references)} --references")
    given = {sha256(path): source for path, source in zip(references, sources, strict=True)}
    results = [row for path in files for row in read_results(path)]
    need_known("system", systems, (row.system for row in results))
    counts, sheets = read_sentences(files), dict[Conditions, Sheet]()
    for each in group(results):
        if systems and not any(line.system in systems for line in each.lines):
            continue
        key = each.conditions
        lengths = _lengths(each.results[0], counts, given)
        if cut:
            parts, title = cut(lengths), f"{key.heading}, {len(lengths):,} sentences"
            sheet = sheets.setdefault(key, Sheet(title, "tokens" if given else "words"))
        else:
            parts = [part_of(range(len(lengths)), lengths, key.test_set)]
            key = replace(key, test_set="test sets", references_sha256="", sentences=0)
            sheet = sheets.setdefault(key, Sheet(key.direction))
        sheet.add(each, counts, parts, systems)
    titles = Counter(sheet.title for sheet in sheets.values())
    for key, sheet in sheets.items():
        if titles[sheet.title] > 1:
            sheet.title = key.title
    return list(sheets.values())


def _lengths(row: Result, counts: Sentences, given: Mapping[str, Path]) -> Sequence[int]:
    """Source lengths of a row; raises :class:`UserError` if they are unknown."""
    if not given:
        counts.statistics(row)  # raises for a row without counts
        if lengths := counts.texts[row.references_sha256].source_lengths:
            return lengths
        raise UserError(f"{row.test_set}: no source text next to its references; give --sources")
    source = of_row(row, given)
    if sha256(source) == row.references_sha256:
        raise UserError(f"{source}: the references, not their sources")
    lengths = [len(line.split()) for line in read_lines(source)]
    if len(lengths) != row.sentences:
        raise UserError(f"{source}: {len(lengths)} lines, but {row.sentences} were translated")
    return lengths


def blocks_of(sheets: Sequence[Sheet], trained_to: int | None = None) -> list[Block]:
    """The tables of all sheets; ``trained_to``: longest source in training."""
    blocks = [block for sheet in sheets for block in _tables(sheet)]
    note = f"Heads: {sheets[0].heads}, with the number of sentences."
    if trained_to:
        note += f" Longest source of training: {trained_to} {sheets[0].unit}."
    note += " ±: half of the 95 % interval, from resamples of the sentences, not of the seeds."
    note += " Several seeds: their mean."
    if any(GAIN in sheet.values for sheet in sheets):
        note += f" To {BASELINE}: both systems are resampled with the same sentences."
    return [*blocks, Note(note)]


def _tables(sheet: Sheet) -> Iterator[Block]:
    for measure, form in _FORMS.items():
        rows = [
            [name, *(_cell(own.get(part.name), form, len(part.members)) for part in sheet.parts)]
            for name, own in sheet.values.get(measure, {}).items()
        ]
        if rows:
            yield Heading(f"{measure}, {sheet.title}")
            yield Table(["system", *(part.head for part in sheet.parts)], rows)


def _cell(value: Estimate | None, form: str, sentences: int) -> str:
    """A value with its interval, except for one sentence, whose resamples are identical."""
    if value is None:
        return ""
    return number(value.value, form, value.half_width if sentences > 1 else None)


def picture(sheets: Sequence[Sheet], trained_to: int | None = None) -> Any:
    """A picture of BLEU (relative to the baseline, if any) and length ratio, a line per sheet."""
    names = dict.fromkeys(name for sheet in sheets for name in sheet.values[BLEU])
    height = max(4.2 * len(sheets), 0.17 * len(names) + 0.8)  # inches; a line of the legend each
    shape = {"figsize": (9, height), "layout": "constrained"}
    figure, rows = pyplot().subplots(len(sheets), 2, squeeze=False, **shape)
    styles = line_styles(names, dashed=True)
    handles: dict[str, Any] = {}
    for sheet, panels in zip(sheets, rows, strict=True):
        first = GAIN if GAIN in sheet.values else BLEU
        for panel, measure in zip(panels, (first, RATIO), strict=True):
            handles |= _draw(panel, sheet, measure, styles)
            if trained_to and trained_to <= panel.get_xlim()[1]:
                line = panel.axvline(trained_to, color="gray", linestyle=":", linewidth=1)
                handles["longest of training"] = line
        panels[0].set_ylabel(sheet.title)
    figure.legend(handles.values(), handles, loc="outside right upper", fontsize=8)
    figure.supxlabel("bars: 95 % intervals over sentences; several seeds: their mean", fontsize=9)
    return figure


def _draw(
    panel: Any, sheet: Sheet, measure: str, styles: Mapping[str, dict[str, str]]
) -> dict[str, Any]:
    """Draws one measure of all systems, with intervals if there are few systems; returns the
    handles of the legend by name.
    """
    at = {part.name: part.mean_length for part in sheet.parts}
    width = _SPREAD * min((b - a for a, b in pairwise(at.values())), default=0.0)
    values, handles = sheet.values[measure], {}
    for place, (name, own) in enumerate(values.items()):
        aside = width * ((place + 0.5) / len(values) - 0.5)
        known = {at[part] + aside: own[part] for part in at if part in own}
        heights, bars = ([getattr(y, of) for y in known.values()] for of in ("value", "half_width"))
        style = {"markersize": 4, "linewidth": 1, "elinewidth": 0.5, **styles[name]}
        style["yerr"] = bars if len(values) <= _LEGIBLE else None
        handles[name] = panel.errorbar(list(known), heights, **style)
        shown = ", ".join(format(height, _FORMS[measure]) for height in heights)
        handles[name].lines[0].set_gid(f"t:{name}: {shown}")
    ticks, heads = dict(zip(at, at, strict=True)), sheet.heads
    levels = [own for name, own in sheet.values[BLEU].items() if name not in values]
    if len(levels) == 1:  # BLEU of the baseline
        ticks |= {part: f"{part}\n{level.value:.1f}" for part, level in levels[0].items()}
        heads += f"; below, BLEU of {BASELINE}"
    if measure == GAIN:
        panel.axhline(0, color="black", linewidth=1)
    panel.set_xticks(list(at.values()), list(ticks.values()), fontsize=8)
    panel.set(title=measure, xlabel=heads)
    panel.grid(alpha=0.3)
    return handles
