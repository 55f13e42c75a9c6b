"""Reports of scores by source length, position in the sentence, and word frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

from ..corpora.parallel import read_lines, read_sides
from ..evaluation import lengths as measures
from ..evaluation.groups import BASELINE, Conditions, Group, Line, group
from ..evaluation.hypotheses import by_checksum, of_row, read_hypotheses, source_of
from ..evaluation.lengths import Bucket, Estimate, Part
from ..evaluation.records import Result, read_all
from ..system.errors import UserError
from ..system.files import sha256
from ..system.options import need_known
from .blocks import Block, Heading, Note, Table, number
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
_SPREAD = 0.25  # of the distance between buckets, over which their marks are spread

Cut = Callable[[Sequence[int]], list[Part]]
Estimates = Mapping[str, Estimate]  # by part, tenth or frequency


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
    tenths: dict[str, Estimates] = field(default_factory=dict)
    rare: dict[str, Estimates] = field(default_factory=dict)

    @property
    def heads(self) -> str:
        return f"lengths of the sources in {self.unit}" if self.unit else "test sets"

    @cached_property
    def gains(self) -> dict[str, Estimates]:
        """BLEU of each system above its baseline, by part, once all buckets are filled."""
        gains: dict[str, Estimates] = {}
        for name, baseline in self.baselines.items():
            own, other = self.buckets[name], self.buckets.get(baseline, {})
            gains[name] = {
                part: measures.difference(own[part].statistics, other[part].statistics)
                for part in own.keys() & other.keys()
            }
        return gains

    def each(self, name: str, measure: str) -> Estimates:
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
        if training and (known := measures.share_known(text[1], frequency)) < _KNOWN:
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
        sheet.parts = sorted([*sheet.parts, *parts], key=lambda part: part.mean_length)
        _fill(sheet, own, text, parts, systems, frequency if cut else None)
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
        hypotheses = [read_hypotheses(folders[row.key], row, len(text[0])) for row in line.results]
        made = measures.buckets(text[0], hypotheses, text[1], parts)
        sheet.buckets.setdefault(name, {}).update({each.part.name: each for each in made})
        if systems and line.system not in systems:
            continue
        if name not in sheet.shown:
            sheet.shown.append(name)
        if baseline and baseline is not line:
            sheet.baselines[name] = names[baseline]
        if frequency is not None:
            tenths = enumerate(measures.tenths(hypotheses, text[1]), start=1)
            sheet.tenths[name] = {str(tenth): each for tenth, each in tenths}
        if frequency:
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
    names = [each.name for each in fields(Conditions)]
    names = [n for n in names if len({getattr(each.conditions, n) for each in groups}) > 1]
    lines = {}
    for each in groups:
        label = ", ".join(f"{name} {getattr(each.conditions, name)}" for name in names)
        for line in each.lines:
            unique = line.name if times[line.name] == 1 else f"{line.name} ({label})"
            lines[unique] = line, each.baseline
    return lines


def blocks_of(sheets: Sequence[Sheet]) -> list[Block]:
    """The tables of all sheets, and how to read them."""
    blocks = [block for sheet in sheets for block in _tables(sheet)]
    named_by = " or ".join(dict.fromkeys(sheet.heads for sheet in sheets))
    note = f"Heads: {named_by}, with the number of sentences."
    if sheets[0].trained_to:
        note += f" Longest source of training: {sheets[0].trained_to} {sheets[0].unit}."
    paired = _PAIRED if any(sheet.baselines for sheet in sheets) else ""
    return [*blocks, Note(f"{note} {_READING}{paired}")]


def _tables(sheet: Sheet) -> Iterator[Block]:
    bleu, chrf, ratio = (
        {name: sheet.each(name, measure) for name in sheet.shown}
        for measure in ("bleu", "chrf", "ratio")
    )
    heads = ["system", *(f"{part.name} ({len(part.members)})" for part in sheet.parts)]
    for title, values, form in (
        ("BLEU", bleu, ".1f"),
        (f"BLEU to {BASELINE}", sheet.gains, "+.1f"),
        ("chrF", chrf, ".1f"),
        ("length ratio", ratio, ".3f"),
    ):
        rows = [
            [name, *(_cell(own.get(part.name), part, form) for part in sheet.parts)]
            for name, own in values.items()
        ]
        if rows:
            yield from (Heading(f"{title}, {sheet.title}"), Table(heads, rows))
    for title, note, shares in (
        ("Word accuracy by tenth of the sentence", _ACCURACY, sheet.tenths),
        ("Recall of words by frequency in training", _RECALL, sheet.rare),
    ):
        rows = [
            [name, *("" if isnan(each.value) else f"{each.value:.1f}" for each in own.values())]
            for name, own in shares.items()
        ]
        if rows:
            yield Heading(f"{title}, {sheet.title}")
            yield Table(["system", *next(iter(shares.values()))], rows)
            every = [each for own in shares.values() for each in own.values()]
            # In short texts a tenth may be without words.
            yield Note(note.format(max(each.half_width for each in every if not isnan(each.value))))


def _cell(value: Estimate | None, part: Part, form: str) -> str:
    """A value with its interval; without it for one sentence, whose resamples are all the same."""
    if value is None:
        return ""
    return number(value.value, form, value.half_width if len(part.members) > 1 else None)


def picture(sheets: Sequence[Sheet]) -> Any:
    """For each sheet BLEU minus the baseline's (if there is one), length ratio, word accuracy."""
    columns = 3 if any(sheet.tenths for sheet in sheets) else 2
    shape = {"figsize": (4 * columns + 1, 4.2 * len(sheets)), "layout": "constrained"}
    figure, rows = pyplot().subplots(len(sheets), columns, squeeze=False, **shape)
    styles = line_styles((name for sheet in sheets for name in sheet.shown), dashed=True)
    handles: dict[str, Any] = {}
    for sheet, panels in zip(sheets, rows, strict=True):
        handles |= _draw(sheet, panels, styles)
    figure.legend(handles.values(), handles, loc="outside right upper", fontsize=8)
    figure.supxlabel("bars: 95 % intervals over sentences; several seeds: their mean", fontsize=9)
    return figure


def _draw(sheet: Sheet, panels: Any, styles: Mapping[str, dict[str, str]]) -> dict[str, Any]:
    """Draws a sheet into a row of panels; returns what the legend shows, by name."""
    bleu, ratio, *accuracy = panels
    at = {part.name: part.mean_length for part in sheet.parts}
    width = _SPREAD * min((b - a for a, b in pairwise(at.values())), default=0.0)
    handles = {}
    for place, name in enumerate(sheet.shown):
        aside = width * ((place + 0.5) / len(sheet.shown) - 0.5)
        first = sheet.gains.get(name, {}) if sheet.baselines else sheet.each(name, "bleu")
        for panel, values in ((bleu, first), (ratio, sheet.each(name, "ratio"))):
            own = [part for part in at if part in values]
            xs, ys = [at[part] + aside for part in own], [values[part] for part in own]
            handles[name] = _curve(panel, xs, ys, styles[name])
        for panel in accuracy:
            tenths = sheet.tenths[name]
            _curve(panel, [*map(int, tenths)], [*tenths.values()], styles[name])
    title, heads, ticks = "BLEU", sheet.heads, list(at)
    if sheet.baselines:
        bleu.axhline(0, color="black", linewidth=1)
        title = f"BLEU minus that of {BASELINE}"
        levels = [sheet.each(name, "bleu") for name in {*sheet.baselines.values()}]
        if len(levels) == 1 and levels[0].keys() == at.keys():
            heads += f"; below, BLEU of {BASELINE}"
            ticks = [f"{part}\n{levels[0][part].value:.1f}" for part in at]
    bleu.set(title=title, xlabel=heads, ylabel=sheet.title)
    ratio.set(title="length ratio", xlabel=sheet.heads)
    for panel in accuracy:
        panel.set(title="word accuracy, %", xlabel="tenth of the reference")
    for panel, labels in ((bleu, ticks), (ratio, list(at))):
        panel.set_xticks(list(at.values()), labels, fontsize=8)
        if sheet.trained_to and sheet.trained_to <= panel.get_xlim()[1]:
            line = panel.axvline(sheet.trained_to, color="gray", linestyle=":", linewidth=1)
            handles["longest of training"] = line
    for panel in panels:
        panel.grid(alpha=0.3)
    return handles


def _curve(panel: Any, xs: Sequence[float], ys: Sequence[Estimate], how: dict[str, str]) -> Any:
    # Resamples of few sentences may all lie to one side.
    below = [max(y.value - y.low, 0) for y in ys]
    above = [max(y.high - y.value, 0) for y in ys]
    style = {"markersize": 4, "linewidth": 1, "elinewidth": 0.5}
    return panel.errorbar(xs, [y.value for y in ys], yerr=[below, above], **how, **style)
