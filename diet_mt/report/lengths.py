"""Translations by source length, by place in the sentence, and by word frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

from ..command_line import need_known
from ..corpora.parallel import read_lines, read_sides
from ..errors import UserError
from ..evaluation import lengths as measures
from ..evaluation.groups import BASELINE, Conditions, Group, Line, group
from ..evaluation.hypotheses import by_checksum, of_row, read_hypotheses, source_of
from ..evaluation.lengths import TENTHS, Bucket, Estimate, Part
from ..evaluation.records import Result, read_all
from ..files import sha256
from .blocks import Block, Grid, Heading, Note, number
from .style import line_styles, pyplot

_READING = (
    "±: half of the 95 % interval, from resamples of the sentences, not of the seeds. Several "
    "seeds: their mean."
)
_PAIRED = f" To {BASELINE}: both systems are resampled with the same sentences."
_ACCURACY = (
    "Word accuracy: percentage of the reference's words in each tenth of the sentence that the "
    "translation contains in the same order (matching blocks of difflib); the last tenth has the "
    "full stop; ± at most {:.1f}."
)
_RECALL = (
    "Recall of words: percentage of the reference's words of a frequency in the training text that "
    "the translation contains; ± at most {:.1f}."
)
_MARKS = 0.05  # least share of subword marks in a text of subwords
_KNOWN = 0.5  # least share of a test set's words in a training text of its language
_LABELS = {"beam": "beam ", "lenpen": "length penalty "}  # of numeric conditions
_SPREAD = 0.25  # of the distance between buckets, over which their marks are spread
_MEASURES = [("BLEU", "bleu", ".1f"), ("chrF", "chrf", ".1f"), ("length ratio", "ratio", ".3f")]

Cut = Callable[[Sequence[int]], list[Part]]


@dataclass
class Sheet:
    """Systems shown together, by name.

    ``unit``: of the source lengths that name the parts; "" where parts are test sets;
    ``baselines``: the baseline of each system; ``shown``: systems, without a baseline that is only
    compared with.
    """

    title: str
    unit: str = ""
    trained_to: int | None = None  # longest source of training
    parts: list[Part] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    baselines: dict[str, str] = field(default_factory=dict)
    buckets: dict[str, dict[str, Bucket]] = field(default_factory=dict)
    tenths: dict[str, list[Estimate]] = field(default_factory=dict)
    rare: dict[str, dict[str, Estimate]] = field(default_factory=dict)

    @property
    def heads(self) -> str:
        return f"lengths of the sources in {self.unit}" if self.unit else "test sets"

    def gains(self, name: str) -> dict[str, Estimate]:
        """BLEU above the baseline, by part; empty for the baseline."""
        own, other = self.buckets[name], self.buckets.get(self.baselines.get(name, ""), {})
        return {
            part: measures.difference(own[part].statistics, other[part].statistics)
            for part in own.keys() & other.keys()
        }

    def each(self, name: str, measure: str) -> dict[str, Estimate]:
        """A measure of a system, by part."""
        return {part: getattr(bucket, measure) for part, bucket in self.buckets[name].items()}


def sheets_of(
    files: Sequence[Path],
    references: Sequence[Path],
    sources: Sequence[Path] = (),
    *,
    systems: Sequence[str] = (),
    cut: Cut | None,
    training: Path | None = None,
    trained_to: int | None = None,
) -> list[Sheet]:
    """One sheet per test set and direction; without ``cut``, per direction.

    Args:
        sources: of ``references``, in their order (default ``test.en`` next to ``test.de``).
        systems: shown (default all); always compared with sinusoidal positions.
        cut: sorts sentences into buckets by source length; None: each test set is a bucket.
        training: target side of the training text, for word frequencies.
        trained_to: the longest source of training, in the unit of ``sources``.

    Raises:
        UserError: no rows, or unknown system; missing references or sources; sources of another
            length; changed hypotheses; training text of another language or in subwords; sources
            in words and in tokens with ``trained_to``; two test sets of one name.
    """
    rows = read_all(files)
    need_known("system", systems, (row.system for _, row in rows))
    given = by_checksum(references, sources)
    sets: dict[tuple[str, str], list[tuple[Path, Result]]] = {}
    for path, row in rows:
        if not systems or row.system in (*systems, BASELINE):
            sets.setdefault((row.references_sha256, row.direction), []).append((path.parent, row))
    frequency = _frequency_in(training) if training else Counter[str]()
    sheets: dict[str, Sheet] = {}
    for (digest, direction), own in sets.items():
        if systems and not any(row.system in systems for _, row in own):
            continue
        first = own[0][1]
        source, reference, unit = _texts(first, given)
        if trained_to and any(sheet.unit != unit for sheet in sheets.values()):
            raise UserError("--trained-to: some sources are words, others tokens; run them apart")
        text = read_sides(source, reference)
        known = measures.share_known(text[1], frequency) if training else 1
        if known < _KNOWN:
            raise UserError(
                f"{training}: has {100 * known:.0f} % of the words of {reference}; give the target "
                "side of the training text"
            )
        lengths = [len(line.split()) for line in text[0]]
        if cut is None:
            parts = [measures.part_of(range(len(lengths)), lengths, first.test_set)]
            sheet = sheets.setdefault(direction, Sheet(direction))
        else:
            parts = cut(lengths)
            title = f"{first.test_set}, {direction}, {len(lengths):,} sentences"
            sheet = sheets.setdefault(direction + digest, Sheet(title, unit, trained_to))
        if {part.name for part in parts} & {part.name for part in sheet.parts}:
            raise UserError(f"{direction}: two test sets named {first.test_set}; give one")
        sheet.parts += parts
        _fill(sheet, own, text, parts, systems, frequency if cut else None)
    for sheet in sheets.values():
        sheet.parts.sort(key=lambda part: part.mean_length)
    return list(sheets.values())


def _fill(
    sheet: Sheet,
    rows: Sequence[tuple[Path, Result]],
    text: tuple[list[str], list[str]],
    parts: Sequence[Part],
    systems: Sequence[str],
    frequency: Counter[str] | None,
) -> None:
    """Adds scores by part and, with ``frequency``, by tenth and by frequency of words."""
    lines = _lines(group(row for _, row in rows))
    names = {line: name for name, (line, _) in lines.items()}
    folders = {row.key: folder for folder, row in rows}
    for name, (line, baseline) in lines.items():
        shown = not systems or line.system in systems
        if shown and name not in sheet.shown:
            sheet.shown.append(name)
        if shown and baseline and baseline is not line:
            sheet.baselines[name] = names[baseline]
        count = len(text[0])
        hypotheses = [read_hypotheses(folders[row.key], row, count) for row in line.results]
        made = measures.buckets(text[0], hypotheses, text[1], parts)
        sheet.buckets.setdefault(name, {}).update({each.part.name: each for each in made})
        if shown and frequency is not None:
            sheet.tenths[name] = measures.tenths(hypotheses, text[1])
        if shown and frequency:
            sheet.rare[name] = measures.rare_words(hypotheses, text[1], frequency)


def _texts(row: Result, given: Mapping[str, tuple[Path, Path | None]]) -> tuple[Path, Path, str]:
    """Source and references of a row, and the unit of the source: words, or tokens of another file
    than that next to the references.
    """
    reference, source = of_row(row, given)
    adjacent = source_of(reference, row)
    source = source or adjacent
    if source is None:
        raise UserError(f"{reference}: no sources next to it; give them by --sources")
    if sha256(source) == row.references_sha256:
        raise UserError(f"{source}: the references, not their sources")
    own = adjacent is not None and source.resolve() == adjacent.resolve()
    return source, reference, "words" if own else "tokens"


def _frequency_in(training: Path) -> Counter[str]:
    frequency = measures.frequencies(read_lines(training))
    # BPE's marks are tokens of their own here; SentencePiece's begin a word.
    marks = frequency["@"] + sum(n for word, n in frequency.items() if word.startswith("▁"))
    if marks > _MARKS * sum(frequency.values()):
        raise UserError(f"{training}: subwords; give the raw text")
    return frequency


def _lines(groups: Sequence[Group]) -> dict[str, tuple[Line, Line | None]]:
    """Lines and their baselines by unique names: those in several groups with the conditions that
    tell the groups apart.
    """
    times = Counter(line.name for each in groups for line in each.lines)
    labels: list[list[str]] = [[] for _ in groups]
    for one in fields(Conditions):
        prefix = _LABELS.get(one.name, "")
        values = [f"{prefix}{getattr(each.conditions, one.name)}" for each in groups]
        longer = [[*words, value] for words, value in zip(labels, values, strict=True)]
        if len(set(map(tuple, longer))) > len(set(map(tuple, labels))):
            labels = longer
    lines = {}
    for each, words in zip(groups, labels, strict=True):
        for line in each.lines:
            name = line.name if times[line.name] == 1 else f"{line.name} ({', '.join(words)})"
            lines[name] = line, each.baseline
    return lines


def blocks_of(sheets: Sequence[Sheet]) -> list[Block]:
    """The tables of all sheets, and how to read them."""
    blocks: list[Block] = []
    for sheet in sheets:
        tables = [
            (title, {name: sheet.each(name, measure) for name in sheet.shown}, form)
            for title, measure, form in _MEASURES
        ]
        if sheet.baselines:
            gains = {name: sheet.gains(name) for name in sheet.baselines}
            tables.insert(1, (f"BLEU to {BASELINE}", gains, "+.1f"))
        heads = [f"{part.name} ({len(part.members)})" for part in sheet.parts]
        for title, values, form in tables:
            rows = [
                [name, *(_cell(own.get(part.name), part, form) for part in sheet.parts)]
                for name, own in values.items()
            ]
            blocks += [Heading(f"{title}, {sheet.title}"), Grid(["system", *heads], rows)]
        accuracy = {name: dict(enumerate(own, 1)) for name, own in sheet.tenths.items()}
        for title, note, of in (
            ("Word accuracy by tenth of the sentence", _ACCURACY, accuracy),
            ("Recall of words by frequency in training", _RECALL, sheet.rare),
        ):
            blocks += _shares(f"{title}, {sheet.title}", note, of)
    named_by = " or ".join(dict.fromkeys(sheet.heads for sheet in sheets))
    note = f"Heads: {named_by}, with the number of sentences."
    if sheets[0].trained_to:
        note += f" Longest source of training: {sheets[0].trained_to} {sheets[0].unit}."
    paired = _PAIRED if any(sheet.baselines for sheet in sheets) else ""
    return [*blocks, Note(f"{note} {_READING}{paired}")]


def _cell(value: Estimate | None, part: Part, form: str) -> str:
    """A value with its interval; without it for one sentence, whose resamples are all the same."""
    if value is None:
        return ""
    return number(value.value, form, value.half_width if len(part.members) > 1 else None)


def _shares(title: str, note: str, of: Mapping[str, Mapping[Any, Estimate]]) -> list[Block]:
    if not of:
        return []
    # In short texts a tenth may be without words.
    widest = max(e.half_width for own in of.values() for e in own.values() if not isnan(e.value))
    rows = [
        [name, *("" if isnan(each.value) else f"{each.value:.1f}" for each in own.values())]
        for name, own in of.items()
    ]
    heads = [str(head) for head in next(iter(of.values()))]
    return [Heading(title), Grid(["system", *heads], rows), Note(note.format(widest))]


def picture(sheets: Sequence[Sheet]) -> Any:
    """For each sheet BLEU minus the baseline's (if there is one), length ratio, word accuracy."""
    columns = 3 if any(sheet.tenths for sheet in sheets) else 2
    shape = {"figsize": (4 * columns + 1, 4.2 * len(sheets)), "layout": "constrained"}
    figure, panels = pyplot().subplots(len(sheets), columns, squeeze=False, **shape)
    styles = line_styles((name for sheet in sheets for name in sheet.shown), dashed=True)
    drawn: dict[str, Any] = {}
    for sheet, (bleu, ratio, *place) in zip(sheets, panels, strict=True):
        at = [part.mean_length for part in sheet.parts]
        width = _SPREAD * min((b - a for a, b in pairwise(at)), default=0.0) / len(sheet.shown)
        for number_of, name in enumerate(sheet.shown):
            first = sheet.gains(name) if sheet.baselines else sheet.each(name, "bleu")
            aside = width * (number_of + 0.5 - len(sheet.shown) / 2)
            for panel, values in ((bleu, first), (ratio, sheet.each(name, "ratio"))):
                parts = [part for part in sheet.parts if part.name in values]
                xs = [part.mean_length + aside for part in parts]
                drawn[name] = _curve(panel, xs, [values[p.name] for p in parts], styles[name])
            for panel in place:
                _curve(panel, range(1, TENTHS + 1), sheet.tenths[name], styles[name])
        names = [part.name for part in sheet.parts]
        heads, lower = sheet.heads, names
        if sheet.baselines:
            bleu.axhline(0, color="black", linewidth=1)
            if levels := _levels(sheet):
                heads = f"{sheet.heads}; below, BLEU of {BASELINE}"
                lower = [f"{name}\n{levels[name]:.1f}" for name in names]
        title = f"BLEU minus that of {BASELINE}" if sheet.baselines else "BLEU"
        bleu.set(title=title, xlabel=heads, ylabel=sheet.title)
        ratio.set(title="length ratio", xlabel=sheet.heads)
        for panel, ticks in ((bleu, lower), (ratio, names)):
            panel.set_xticks(at, ticks, fontsize=8)
            if sheet.trained_to and sheet.trained_to <= panel.get_xlim()[1]:
                drawn["longest of training"] = panel.axvline(
                    sheet.trained_to, color="gray", linestyle=":", linewidth=1
                )
        for panel in place:
            panel.set(title="word accuracy, %", xlabel="tenth of the reference")
        for panel in (bleu, ratio, *place):
            panel.grid(alpha=0.3)
    figure.legend(drawn.values(), drawn, loc="outside right upper", fontsize=8)
    figure.supxlabel("bars: 95 % intervals over sentences; several seeds: their mean", fontsize=9)
    return figure


def _levels(sheet: Sheet) -> dict[str, float]:
    """BLEU of the only baseline, by part; empty for several."""
    own = [sheet.each(name, "bleu") for name in {*sheet.baselines.values()}]
    if len(own) != 1 or len(own[0]) < len(sheet.parts):
        return {}
    return {part: bleu.value for part, bleu in own[0].items()}


def _curve(panel: Any, at: Sequence[float], own: Sequence[Estimate], look: dict[str, str]) -> Any:
    # Resamples of few sentences may all lie to one side.
    around = [
        [max(each.value - each.low, 0) for each in own],
        [max(each.high - each.value, 0) for each in own],
    ]
    style = {"markersize": 4, "linewidth": 1, "elinewidth": 0.5}
    return panel.errorbar(at, [each.value for each in own], yerr=around, **look, **style)
