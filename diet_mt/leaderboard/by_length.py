"""Translations by length, by place and by frequency of words: what rows say, and tables of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isnan
from pathlib import Path
from typing import Any

from ..blocks import Block, Grid, Heading, Note, number
from ..command_line import need_known
from ..corpora.parallel import read_lines, read_sides
from ..errors import UserError
from ..evaluation.groups import BASELINE, Conditions, Group, Line, group
from ..evaluation.kept import by_checksum, kept_hypotheses, of_row, sources_beside
from ..evaluation.lengths import (
    Bucket,
    Estimate,
    Part,
    buckets,
    difference,
    frequencies,
    part_of,
    rare_words,
    share_known,
    tenths,
)
from ..evaluation.records import Result, read_all
from ..files import sha256

READING = (
    "±: half of the 95 % interval, from resamples of the sentences; it does not cover the choice "
    "of the seed. Several seeds: their mean."
)
PAIRED = f" To {BASELINE}: each resample has the same sentences for both systems."
ACCURACY = (
    "Word accuracy: of the reference's words in each tenth of a sentence, in %, those that the "
    "translation has, too, in the same order (the matching blocks of difflib); the last tenth has "
    "the full stop; ± at most {:.1f}."
)
RECALL = (
    "Recall of words: of the reference's words that stand so often in the training text, in %, "
    "those that the translation has, too; ± at most {:.1f}."
)
_MARKS = 0.05  # of all tokens, at least, in a text of subwords
_KNOWN = 0.5  # of a test set's words, at least, in a training text of its language
_LABELS = {"beam": "beam ", "lenpen": "length penalty "}  # of conditions that are numbers
_MEASURES: list[tuple[str, Callable[[Bucket], Estimate], str]] = [
    ("BLEU", lambda bucket: bucket.bleu, ".1f"),
    ("chrF", lambda bucket: bucket.chrf, ".1f"),
    ("length ratio", lambda bucket: bucket.ratio, ".3f"),
]


@dataclass
class Sheet:
    """What is shown together. By the name of a system: its bucket of each part, and so on;
    ``baselines``: the name of the one that it differs from in nothing but positions; ``asked``:
    the systems that are shown, all but a baseline that others are only compared with.
    """

    title: str
    unit: str = ""  # of the lengths that parts are named by; none: they are test sets
    trained_to: int | None = None  # the longest source of training, where that is told
    parts: list[Part] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    baselines: dict[str, str] = field(default_factory=dict)
    buckets: dict[str, dict[str, Bucket]] = field(default_factory=dict)
    tenths: dict[str, list[Estimate]] = field(default_factory=dict)
    rare: dict[str, dict[str, Estimate]] = field(default_factory=dict)

    @property
    def heads(self) -> str:
        """What parts are named by."""
        return f"lengths of the sources in {self.unit}" if self.unit else "test sets"

    @property
    def shown(self) -> dict[str, dict[str, Bucket]]:
        return {name: self.buckets[name] for name in self.asked}

    def gaps(self, name: str) -> dict[str, Estimate]:
        """BLEU above that of the baseline, by part; nothing of the baseline."""
        own, other = self.buckets[name], self.buckets.get(self.baselines.get(name, ""), {})
        return {
            part: difference(own[part].statistics, other[part].statistics)
            for part in own.keys() & other.keys()
        }


def sheets_of(
    files: Sequence[Path],
    references: Sequence[Path],
    sources: Sequence[Path] = (),
    *,
    systems: Sequence[str] = (),
    cut: Callable[[Sequence[int]], list[Part]] | None,
    training: Path | None = None,
    trained_to: int | None = None,
) -> list[Sheet]:
    """One sheet for each test set and direction; without ``cut`` for each direction.

    Args:
        sources: of ``references``, in their order; none: beside each, as ``test.en`` of
            ``test.de``.
        cut: sentences into buckets, by the lengths of their sources; None: each test set is a
            bucket of its own.
        systems: that are shown; none: all. Sinusoidal positions are compared with even so.
        training: target side of what was trained on, for the frequency of words.
        trained_to: the longest source of training, to be shown; in what ``sources`` count.

    Raises:
        UserError: there are no rows, or no such system; the references of a row are not given; a
            source is missing, has another number of lines, or is the reference; hypotheses have
            changed; the training text is of another language, or in subwords; sources count
            different things with ``trained_to``; without ``cut`` two test sets of one direction
            have one name.
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
        _need_one_unit(trained_to, unit, sheets.values())
        text = read_sides(source, reference)
        if training:
            _need_target_side(training, share_known(text[1], frequency), reference)
        lengths = [len(line.split()) for line in text[0]]
        if cut is None:
            parts = [part_of(range(len(lengths)), lengths, first.test_set)]
            sheet = sheets.setdefault(direction, Sheet(direction))
        else:
            parts = cut(lengths)
            title = f"{first.test_set}, {direction}, {len(lengths):,} sentences"
            sheet = sheets.setdefault(direction + digest, Sheet(title, unit, trained_to))
        if {part.name for part in parts} & {part.name for part in sheet.parts}:
            raise UserError(f"{direction}: two test sets of the name {first.test_set}; give one")
        sheet.parts += parts
        lines = _lines(group(row for _, row in own))
        names = {line: name for name, (line, _) in lines.items()}
        for name, (line, baseline) in lines.items():
            asked = not systems or line.system in systems
            if asked and name not in sheet.asked:
                sheet.asked.append(name)
            if asked and baseline and baseline is not line:
                sheet.baselines[name] = names[baseline]
            folders = {row.key: folder for folder, row in own}
            count = len(lengths)
            said = [kept_hypotheses(folders[row.key], row, count) for row in line.results]
            _fill(sheet, name, said, text, parts, frequency, whole=asked and cut is not None)
    for sheet in sheets.values():
        sheet.parts.sort(key=lambda part: part.mean_length)
    return list(sheets.values())


def _texts(row: Result, given: Mapping[str, tuple[Path, Path | None]]) -> tuple[Path, Path, str]:
    """Source and references of a row, and what the words of the source are: its own words, or
    tokens of another file. Raises UserError as ``sheets_of``.
    """
    reference, source = of_row(row, given)
    beside = sources_beside(reference, row)
    source = source or beside
    if source is None:
        raise UserError(f"{reference}: its sources are not beside it; give them by --sources")
    if sha256(source) == row.references_sha256:
        raise UserError(f"{source}: these are the references, not their sources")
    own = beside is not None and source.resolve() == beside.resolve()
    return source, reference, "words" if own else "tokens"


def _frequency_in(training: Path) -> Counter[str]:
    """How often words stand in a text. Raises UserError where it is cut into subwords."""
    found = frequencies(read_lines(training))
    # The marks of BPE, which are tokens of their own here, and of SentencePiece.
    marks = found["@"] + sum(n for word, n in found.items() if word.startswith("▁"))
    if marks > _MARKS * sum(found.values()):
        raise UserError(f"{training}: is cut into subwords; give the raw text")
    return found


def _need_target_side(training: Path, known: float, reference: Path) -> None:
    if known < _KNOWN:
        raise UserError(
            f"{training}: has {100 * known:.0f} % of the words of {reference}; "
            "give the target side of the training text"
        )


def _need_one_unit(trained_to: int | None, unit: str, sheets: Iterable[Sheet]) -> None:
    if trained_to and any(sheet.unit != unit for sheet in sheets):
        raise UserError(
            "--trained-to: some sources count words, others tokens; show these test sets apart"
        )


def _lines(groups: Sequence[Group]) -> dict[str, tuple[Line, Line | None]]:
    """All lines under names of their own, with the baseline of each: one that is in several groups,
    with what tells these apart.
    """
    times = Counter(line.name for each in groups for line in each.lines)
    said: list[list[str]] = [[] for _ in groups]
    for one in fields(Conditions):
        label = _LABELS.get(one.name, "")
        values = [f"{label}{getattr(each.conditions, one.name)}" for each in groups]
        longer = [[*words, value] for words, value in zip(said, values, strict=True)]
        if len(set(map(tuple, longer))) > len(set(map(tuple, said))):  # tells more of them apart
            said = longer
    found = {}
    for each, words in zip(groups, said, strict=True):
        for line in each.lines:
            name = line.name if times[line.name] == 1 else f"{line.name} ({', '.join(words)})"
            found[name] = line, each.baseline
    return found


def _fill(
    sheet: Sheet,
    name: str,
    said: Sequence[Sequence[str]],
    text: tuple[list[str], list[str]],
    parts: Sequence[Part],
    frequency: Counter[str],
    *,
    whole: bool,
) -> None:
    """``text``: sources and references; ``whole``: also what is of all sentences together."""
    sources, references = text
    found = buckets(sources, said, references, parts)
    sheet.buckets.setdefault(name, {}).update({each.part.name: each for each in found})
    if whole:
        sheet.tenths[name] = tenths(said, references)
    if whole and frequency:
        sheet.rare[name] = rare_words(said, references, frequency)


def blocks_of(sheets: Sequence[Sheet]) -> list[Block]:
    """What ``blocks`` shows."""
    blocks: list[Block] = []
    for sheet in sheets:
        for title, measure, form in _MEASURES:
            heads = [f"{part.name} ({len(part.members)})" for part in sheet.parts]
            cells = {
                name: [_cell(own.get(part.name), measure, form) for part in sheet.parts]
                for name, own in sheet.shown.items()
            }
            blocks += [Heading(f"{title}, {sheet.title}"), _grid(heads, cells)]
            if title == "BLEU" and sheet.baselines:
                gaps = {name: sheet.gaps(name) for name in sheet.baselines}
                cells = {
                    name: [_said(own.get(part.name), part, "+.1f") for part in sheet.parts]
                    for name, own in gaps.items()
                }
                blocks += [Heading(f"BLEU to {BASELINE}, {sheet.title}"), _grid(heads, cells)]
        accuracy = {name: dict(enumerate(own, 1)) for name, own in sheet.tenths.items()}
        for title, note, of in (
            ("Word accuracy by tenth of the sentence", ACCURACY, accuracy),
            ("Recall of words by frequency in training", RECALL, sheet.rare),
        ):
            blocks += _shares(f"{title}, {sheet.title}", note, of)
    named_by = " or ".join(dict.fromkeys(sheet.heads for sheet in sheets))
    heads_are = f"Heads: {named_by}, and in parentheses the number of sentences."
    if sheets[0].trained_to:
        first = sheets[0]
        heads_are += f" The longest source of training has {first.trained_to} {first.unit}."
    paired = PAIRED if any(sheet.baselines for sheet in sheets) else ""
    return [*blocks, Note(f"{heads_are} {READING}{paired}")]


def _cell(bucket: Bucket | None, measure: Callable[[Bucket], Estimate], form: str) -> str:
    return "" if bucket is None else _said(measure(bucket), bucket.part, form)


def _said(found: Estimate | None, part: Part, form: str) -> str:
    """The value alone of one sentence, whose resamples are all the same."""
    if found is None:
        return ""
    return number(found.value, form, found.half_width if len(part.members) > 1 else None)


def _shares(title: str, note: str, of: Mapping[str, Mapping[Any, Estimate]]) -> list[Block]:
    if not of:
        return []
    heads = [str(head) for head in next(iter(of.values()))]
    found = {name: list(own.values()) for name, own in of.items()}
    # Of a few short sentences, a tenth may have no word.
    known = [each for own in found.values() for each in own if not isnan(each.value)]
    cells = {
        name: ["" if isnan(each.value) else f"{each.value:.1f}" for each in own]
        for name, own in found.items()
    }
    widest = max(each.half_width for each in known)
    return [Heading(title), _grid(heads, cells), Note(note.format(widest))]


def _grid(heads: Sequence[str], cells: Mapping[str, Sequence[str]]) -> Grid:
    return Grid(["system", *heads], [[name, *row] for name, row in cells.items()])
