"""Counts of every sentence of every result: ``sentences/CORPUS.jsonl``, next to the rows.

BLEU of any part of a test set, and of any resample, follows from a few whole numbers of each
sentence: the n-grams that a hypothesis shares with its reference, and both lengths. ``diet-mt
evaluate`` writes them with the row; ``sentences/CORPUS.texts.jsonl`` has the lengths of sources and
references. Their text is not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from ..corpora.parallel import read_lines, read_sides
from ..errors import UserError
from .hypotheses import by_checksum, read_hypotheses, source_of
from .json_rows import Row, locked, read_rows, write_rows
from .records import Result, read_results
from .resampling import ORDERS, Floats, counter


@dataclass(frozen=True)
class Counts(Row):
    """One file of hypotheses: for each sentence its tokens (BLEU's, 13a), and for each order of
    n-grams the matches with the reference.
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
    """One test set. ``source_lengths``: in words between spaces; empty without sources."""

    references_sha256: str
    source_lengths: list[int]
    reference_lengths: list[int]

    @property
    def key(self) -> str:
        return self.references_sha256


@dataclass(frozen=True)
class Sentences:
    """Counts by checksums of hypotheses and references; texts by that of references."""

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


def companions(results: Path) -> tuple[Path, Path]:
    """The files of counts and of texts of a file of results."""
    folder = results.parent / "sentences"
    return folder / results.name, folder / f"{results.stem}.texts.jsonl"


def read_sentences(files: Iterable[Path]) -> Sentences:
    """The companions of files of results. Raises UserError for a line that is none."""
    counts: dict[tuple[str, str], Counts] = {}
    texts: dict[str, Texts] = {}
    for path in files:
        of_counts, of_texts = companions(path)
        if of_counts.exists() and of_texts.exists():
            own = {row.key: row for row in read_rows(Counts, of_counts)}
            texts.update({row.key: row for row in read_rows(Texts, of_texts)})
            counts.update(own)
            for each in own.values():
                text = texts.get(each.references_sha256)
                if text is None or len(text.reference_lengths) != len(each.lengths):
                    raise UserError(f"{of_counts}: not of the sentences of {of_texts}")
    return Sentences(counts, texts)


def put_counts(
    rows: Path,
    results: Sequence[tuple[Result, Sequence[str]]],
    references: Path,
    source: Path | None,
) -> None:
    """Adds the counts of results to those next to the file ``rows``, which has their rows.

    ``results``: each with its hypotheses, of these ``references``. Counts without a row are
    dropped. Raises UserError where references cannot be read.
    """
    with locked(rows.parent):
        saved = read_sentences([rows])
        wanted = {_key(row) for row in read_results(rows)}
        counts = {key: each for key, each in saved.counts.items() if key in wanted}
        new = [pair for pair in results if _key(pair[0]) not in counts]
        if not new:
            return
        if source:
            sources, lines = read_sides(source, references)
        else:
            sources, lines = [], list(read_lines(references))
        source_lengths = [len(line.split()) for line in sources]
        count, texts = counter(lines), dict(saved.texts)
        for result, hypotheses in new:
            if len(lines) != len(hypotheses):
                raise UserError(f"{references}: {len(lines)} lines, {len(hypotheses)} hypotheses")
            counted = count(hypotheses).astype(int)
            digest = result.references_sha256
            texts.setdefault(digest, Texts(digest, source_lengths, counted[:, 1].tolist()))
            counts[_key(result)] = _counts(result, counted)
        of_counts, of_texts = companions(rows)
        write_rows(of_counts, counts.values())
        write_rows(of_texts, texts.values())


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
    saved = read_sentences(files)
    new: dict[tuple[Path, str], list[Result]] = {}
    for path, row in own:
        if not saved.is_counted([row]):
            new.setdefault((path, row.references_sha256), []).append(row)
    for (path, digest), of_test in new.items():
        reference, _ = given[digest]
        results = [(row, read_hypotheses(path.parent, row)) for row in of_test]
        put_counts(path, results, reference, source_of(reference, of_test[0]))


def _counts(row: Result, counted: NDArray[np.int64]) -> Counts:
    """``counted``: (N, 10), as ``resampling.counter`` has them."""
    matches = counted[:, 2 : 2 + ORDERS].T.tolist()
    return Counts(*_key(row), counted[:, 0].tolist(), matches)


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
