"""Counts of every sentence of every result: ``sentences/CORPUS.jsonl``, next to the rows.

BLEU of any part of a test set, and of any resample, follows from a few whole numbers of each
sentence: the n-grams that a hypothesis shares with its reference, and both lengths. ``diet-mt
evaluate`` writes them with the row; references are not stored. For the page, source and reference
of up to a hundred sentences, those on which two systems differ most, are stored in
``sentences/CORPUS.texts.jsonl``, with the lengths of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from ..corpora.parallel import read_lines, read_sides
from ..errors import UserError
from .groups import group
from .json_rows import Row, locked, read_rows, write_rows
from .kept import by_checksum, kept_hypotheses, sources_beside
from .records import Result, read_results
from .resampling import ORDERS, Floats, counter

SHOWN = 100  # sentences whose texts are kept
_OF_TWO = 10  # on which two systems differ most


@dataclass(frozen=True)
class Counts(Row):
    """Of one file of hypotheses, in the order of its sentences: tokens of BLEU (13a), and for each
    order of n-grams the matches with the reference.
    """

    hypotheses_sha256: str
    references_sha256: str
    lengths: list[int]
    matches: list[list[int]]

    def __post_init__(self) -> None:
        super().__post_init__()
        if [len(each) for each in self.matches] != [len(self.lengths)] * ORDERS:
            raise UserError(f"field 'matches' is not of {ORDERS} orders and all sentences")

    @property
    def key(self) -> tuple[str, str]:
        return self.hypotheses_sha256, self.references_sha256

    def statistics(self, references: Sequence[int]) -> Floats:
        """(N, 10), as ``resampling.counter`` has them; ``references``: lengths."""
        return np.array(
            [self.lengths, references, *self.matches, *_totals(self.lengths)], dtype=np.float64
        ).T


@dataclass(frozen=True)
class Texts(Row):
    """Of one test set. ``source_lengths``: what spaces separate; empty where there are no sources.

    ``numbers``: of the sentences that are shown, from 0 on; ``sources`` and ``references``: these.
    """

    references_sha256: str
    source_lengths: list[int]
    reference_lengths: list[int]
    numbers: list[int]
    sources: list[str]
    references: list[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        shown, all_of_them = len(self.numbers), len(self.reference_lengths)
        fits = all(0 <= number < all_of_them for number in self.numbers)
        if not (fits and len(self.references) == shown and len(self.sources) in (0, shown)):
            raise UserError("fields 'numbers', 'sources' and 'references' do not fit together")

    @property
    def key(self) -> str:
        return self.references_sha256


@dataclass(frozen=True)
class Kept:
    """All that is kept: by checksums of hypotheses and references; by that of references."""

    counts: Mapping[tuple[str, str], Counts]
    texts: Mapping[str, Texts]

    def is_counted(self, results: Iterable[Result]) -> bool:
        """Whether the sentences of all these results are."""
        return all(_key(result) in self.counts for result in results)

    def statistics(self, result: Result) -> Floats:
        """(N, 10), as ``resampling.counter`` has them, of a result that is counted."""
        references = self.texts[result.references_sha256].reference_lengths
        return self.counts[_key(result)].statistics(references)


def _key(result: Result) -> tuple[str, str]:
    return result.hypotheses_sha256, result.references_sha256


def files_beside(results: Path) -> tuple[Path, Path]:
    """Where the counts and the texts of a file of results are kept."""
    folder = results.parent / "sentences"
    return folder / results.name, folder / f"{results.stem}.texts.jsonl"


def read_sentences(files: Iterable[Path]) -> Kept:
    """What is kept beside files of results. Raises UserError for a line that is none."""
    counts: dict[tuple[str, str], Counts] = {}
    texts: dict[str, Texts] = {}
    for path in files:
        of_counts, of_texts = files_beside(path)
        if of_counts.exists() and of_texts.exists():
            own = {row.key: row for row in read_rows(Counts, of_counts)}
            texts.update({row.key: row for row in read_rows(Texts, of_texts)})
            counts.update(own)
            for each in own.values():
                text = texts.get(each.references_sha256)
                if text is None or len(text.reference_lengths) != len(each.lengths):
                    raise UserError(f"{of_counts}: not of the sentences of {of_texts}")
    return Kept(counts, texts)


def put_counts(
    rows: Path, result: Result, hypotheses: Sequence[str], references: Path, source: Path | None
) -> None:
    """Adds the counts of a result to those next to the file ``rows``, which has its row.

    Counts without a row are dropped. Raises UserError where references cannot be read.
    """
    with locked(rows.parent):
        kept = read_sentences([rows])
        wanted = {_key(row) for row in read_results(rows)}
        counts = {key: each for key, each in kept.counts.items() if key in wanted}
        if _key(result) in counts:
            return
        sources, lines = _sides(references, source)
        if len(lines) != len(hypotheses):
            raise UserError(f"{references}: {len(lines)} lines, {len(hypotheses)} hypotheses")
        counted = counter(lines)(hypotheses).astype(int)
        texts = dict(kept.texts)
        texts.setdefault(
            result.references_sha256, _texts(result.references_sha256, sources, counted[:, 1])
        )
        counts[_key(result)] = _counts(result, counted)
        _write(rows, counts, texts)


def count_rows(files: Sequence[Path], references: Sequence[Path]) -> None:
    """Adds the counts of rows that have none, as far as their references are given.

    Raises UserError where no row has these references, or hypotheses have changed.
    """
    given = by_checksum(references, ())
    rows = [(path, row) for path in files for row in read_results(path)]
    own = [(path, row) for path, row in rows if row.references_sha256 in given]
    if not own:
        tests = ", ".join(dict.fromkeys(row.test_set for _, row in rows))
        raise UserError(f"none of the --references are those of {tests}")
    kept = read_sentences(files)
    for path, row in own:
        if not kept.is_counted([row]):
            reference, _ = given[row.references_sha256]
            hypotheses = kept_hypotheses(path.parent, row)
            put_counts(path, row, hypotheses, reference, sources_beside(reference, row))


def keep_sentences(
    files: Sequence[Path],
    references: Sequence[Path],
    sources: Sequence[Path] = (),
    *,
    check: bool = False,
) -> None:
    """Counts every row whose references are given, and keeps that beside the files.

    Rows of other references stay as they are; what is of no row any more goes. ``sources``: of
    ``references``, in their order; none: those beside them, where there are some; ``check``: write
    nothing. Raises UserError where no row has these references; a source is missing, or has another
    number of lines; hypotheses have changed; with ``check``, what is kept is something else.
    """
    given = by_checksum(references, sources)
    found = False
    for path in files:
        rows = read_results(path)
        kept = read_sentences([path])
        counts, texts = {}, {}
        for digest in dict.fromkeys(row.references_sha256 for row in rows):
            own = [row for row in rows if row.references_sha256 == digest]
            if digest in given:
                found = True
                reference, source = given[digest]
                source = source or sources_beside(reference, own[0])
                made, texts[digest] = _counted(path.parent, own, reference, source)
                counts.update({each.key: each for each in made})
            elif digest in kept.texts:
                texts[digest] = kept.texts[digest]
                keys = {(row.hypotheses_sha256, digest) for row in own}
                counts.update({key: kept.counts[key] for key in kept.counts if key in keys})
        if texts and (counts, texts) != (kept.counts, kept.texts):
            if check:
                raise UserError(f"{files_beside(path)[0]}: not of these rows and references")
            _write(path, counts, texts)
    if not found:
        raise UserError("none of the --references are those of a row")


def _write(
    rows: Path, counts: Mapping[tuple[str, str], Counts], texts: Mapping[str, Texts]
) -> None:
    of_counts, of_texts = files_beside(rows)
    write_rows(of_counts, counts.values())
    write_rows(of_texts, texts.values())


def _sides(reference: Path, source: Path | None) -> tuple[list[str], list[str]]:
    """Sources, if any, and references."""
    return read_sides(source, reference) if source else ([], list(read_lines(reference)))


def _counts(row: Result, counted: NDArray[np.int64]) -> Counts:
    """``counted``: (N, 10), as ``resampling.counter`` has them."""
    matches = counted[:, 2 : 2 + ORDERS].T.tolist()
    return Counts(*_key(row), counted[:, 0].tolist(), matches)


def _texts(digest: str, sources: Sequence[str], lengths: NDArray[np.int64]) -> Texts:
    """Lengths of a test set; no sentence is shown yet."""
    return Texts(digest, [len(line.split()) for line in sources], lengths.tolist(), [], [], [])


def _counted(
    folder: Path, rows: Sequence[Result], reference: Path, source: Path | None
) -> tuple[list[Counts], Texts]:
    sources, references = _sides(reference, source)
    count = counter(references)
    counted = {
        row.hypotheses_sha256: count(kept_hypotheses(folder, row, len(references))).astype(int)
        for row in rows
    }
    counts = {row.hypotheses_sha256: _counts(row, counted[row.hypotheses_sha256]) for row in rows}
    texts = _texts(rows[0].references_sha256, sources, counted[rows[0].hypotheses_sha256][:, 1])
    # The page shows translations of the first seeds.
    first = [
        counts[line.results[0].hypotheses_sha256] for each in group(rows) for line in each.lines
    ]
    numbers = _differing([sentence_bleu(each, texts.reference_lengths) for each in first])
    shown = replace(
        texts,
        numbers=numbers,
        sources=[sources[number] for number in numbers] if sources else [],
        references=[references[number] for number in numbers],
    )
    return list(counts.values()), shown


def _differing(scores: Sequence[Sequence[float]]) -> list[int]:
    """Sentences on which two systems differ most, in their order; ``scores``: of each system, BLEU
    of each sentence. Those that lead the list of a pair, or are in the lists of many, go first.
    """
    values = np.array(scores)
    weights = np.zeros(values.shape[1])
    for one, other in combinations(values, 2):
        gaps = np.abs(one - other)
        most = [number for number in np.argsort(-gaps, kind="stable")[:_OF_TWO] if gaps[number] > 0]
        weights[most] += 1 / np.arange(1, len(most) + 1)
    best = np.argsort(-weights, kind="stable")[:SHOWN]
    return sorted(int(number) for number in best if weights[number] > 0)


def _totals(lengths: Sequence[int]) -> list[list[int]]:
    """N-grams of sentences of these lengths, for each order."""
    return [[max(length - order, 0) for length in lengths] for order in range(ORDERS)]


def sentence_bleu(counts: Counts, references: Sequence[int]) -> list[float]:
    """BLEU of each sentence by itself, of the orders that it has n-grams of."""
    matches, totals = zip(*counts.matches, strict=True), zip(*_totals(counts.lengths), strict=True)
    return [
        BLEU.compute_bleu([*right], [*every], own, other, "exp", effective_order=True).score
        for right, every, own, other in zip(
            matches, totals, counts.lengths, references, strict=True
        )
    ]
