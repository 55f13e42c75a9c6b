"""Saved hypotheses of rows: their text, sentence counts, and verification.

Text is in single files or in one archive per corpus. BLEU of any part of a test set, and of any
resample, follows from a few whole numbers of each sentence: the n-grams that a hypothesis shares
with its reference, and both lengths. ``diet-mt evaluate`` writes them with the row, to
``sentences/CORPUS.jsonl.gz``; ``sentences/CORPUS.texts.jsonl.gz`` has the lengths of sources and
references.
"""

from __future__ import annotations

import hashlib
import lzma
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

import numpy as np
from sacrebleu.metrics import BLEU

from ..corpora.parallel import read_lines, read_sides
from ..system.errors import UserError
from ..system.files import decoded, sha256, write_text
from .json_rows import Row, locked, read_rows, write_rows
from .records import Result, put_row, read_all, read_results, refuse_another
from .scores import ORDERS, Floats, counter, scores, without_version

Given = TypeVar("Given")
_LARGEST = 1 << 28  # bytes of an unpacked archive


def put_result(folder: Path, result: Result, text: str) -> Path:
    """Adds a row and the text of its hypotheses to ``folder``; returns the file of the row.

    Nothing is written where both are there. Raises UserError where the row with these hypotheses is
    of another training or test set.
    """
    rows = folder / f"{result.file}.jsonl"
    with locked(folder):
        content = _saved(folder, result)
        if content is not None and hashlib.sha256(content).hexdigest() == result.hypotheses_sha256:
            if rows.exists() and result in read_results(rows):
                return rows
        else:
            refuse_another(folder, Result, result.file, result.key, vars(result))
            write_text(folder / result.hypotheses, text)
        return put_row(folder, result)


def read_hypotheses(folder: Path, result: Result, count: int | None = None) -> list[str]:
    """The hypotheses of a row as they were scored; ``count``: of its references."""
    path = folder / result.hypotheses
    content = _saved(folder, result)
    if content is None:
        raise UserError(f"{path}: missing; evaluate {result.system} seed {result.seed} again")
    if hashlib.sha256(content).hexdigest() != result.hypotheses_sha256:
        raise UserError(f"{path}: changed since it was scored; evaluate again")
    lines = decoded(content, str(path)).split("\n") if content else []
    if count not in (None, len(lines)):
        raise UserError(f"{path}: not {count} lines; evaluate again")
    return lines


def _saved(folder: Path, result: Result) -> bytes | None:
    """The content of a hypothesis file, on its own or in the archive of the corpus, or None."""
    path, archive = folder / result.hypotheses, folder / f"{result.corpus}.hyp.tar.xz"
    if path.is_file():
        return path.read_bytes()
    return _files_in(archive).get(result.hypotheses) if archive.is_file() else None


@lru_cache(maxsize=4)
def _files_in(archive: Path) -> Mapping[str, bytes]:
    """Name -> content of the hypothesis files of a corpus, packed by scripts/results.sh."""
    files, size = {}, 0
    try:
        with tarfile.open(archive, "r:xz") as opened:
            for member in opened:
                size += member.size
                if size > _LARGEST:
                    raise UserError(f"{archive}: unpacks to more than {_LARGEST:,} bytes")
                if file := opened.extractfile(member):
                    files[member.name] = file.read()
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise UserError(f"{archive}: damaged archive ({error})") from None
    return files


def of_row(result: Result, references: Mapping[str, Given]) -> Given:
    """The entry of ``references``, by checksum, for a row. Raises UserError for none."""
    if result.references_sha256 not in references:
        raise UserError(
            f"none of the references are those of {result.test_set}, {result.direction}, with "
            f"{result.sentences:,} lines, that {result.system} was scored with"
        )
    return references[result.references_sha256]


def by_checksum(
    references: Sequence[Path], sources: Sequence[Path] = ()
) -> dict[str, tuple[Path, Path | None]]:
    """Checksum of references -> their file, and that of their sources, given in the same order."""
    if sources and len(sources) != len(references):
        raise UserError(f"{len(sources)} --sources, but {len(references)} --references")
    pairs = zip_longest(references, sources)
    return {sha256(path): (path, source) for path, source in pairs}


def source_of(references: Path, result: Result) -> Path | None:
    """``test.en`` next to ``test.de``, ``test.en.gz`` next to ``test.de.gz``; None: missing."""
    source, _, target = result.direction.partition("-")
    for end in (f".{target}", f".{target}.gz"):
        if references.name.endswith(end):
            stem = references.name.removesuffix(end)
            path = references.with_name(f"{stem}.{source}{end[len(target) + 1 :]}")
            if path.is_file():
                return path
    return None


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
        """(N, 10), as ``scores.counter`` has them; ``references``: lengths."""
        totals = [[max(each - order, 0) for each in self.lengths] for order in range(ORDERS)]
        columns = [self.lengths, references, *self.matches, *totals]
        return np.array(columns, dtype=np.float64).T


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
        """(N, 10), as ``scores.counter`` has them, of a result that is counted."""
        references = self.texts[result.references_sha256].reference_lengths
        return self.counts[_key(result)].statistics(references)


def _key(result: Result) -> tuple[str, str]:
    return result.hypotheses_sha256, result.references_sha256


def companions(results: Path) -> tuple[Path, Path]:
    """The files of counts and of texts of a file of results; older ones are not packed."""
    folder = results.parent / "sentences"
    return folder / f"{results.name}.gz", folder / f"{results.stem}.texts.jsonl.gz"


def read_sentences(files: Iterable[Path]) -> Sentences:
    """The counts and texts of files of results, as far as they have any."""
    counts: dict[tuple[str, str], Counts] = {}
    texts: dict[str, Texts] = {}
    for path in files:
        packed = companions(path)
        stored = [each if each.exists() else each.with_suffix("") for each in packed]
        if not all(each.exists() for each in stored):
            continue
        own = {row.key: row for row in read_rows(Counts, stored[0])}
        texts.update({row.key: row for row in read_rows(Texts, stored[1])})
        counts.update(own)
        for each in own.values():
            text = texts.get(each.references_sha256)
            if text is None or len(text.reference_lengths) != len(each.lengths):
                raise UserError(f"{stored[0]}: not of the sentences of {stored[1]}")
    return Sentences(counts, texts)


def put_counts(
    rows: Path,
    results: Sequence[tuple[Result, Sequence[str]]],
    references: Path,
    source: Path | None,
) -> None:
    """Adds the counts of results to those of the file ``rows``, which has their rows.

    ``results``: each with its hypotheses, of these ``references``. Counts without a row are
    dropped.
    """
    with locked(rows.parent):
        saved = read_sentences([rows])
        wanted = {_key(row) for row in read_results(rows)}
        counts = {key: each for key, each in saved.counts.items() if key in wanted}
        new = [pair for pair in results if _key(pair[0]) not in counts]
        if not new:
            return
        sides = read_sides(source, references) if source else ([], list(read_lines(references)))
        count, texts = counter(sides[1]), dict(saved.texts)
        source_lengths = [len(line.split()) for line in sides[0]]
        for result, hypotheses in new:
            if len(sides[1]) != len(hypotheses):
                raise UserError(
                    f"{references}: {len(sides[1])} lines, {len(hypotheses)} hypotheses"
                )
            own, digest = count(hypotheses).astype(int).T.tolist(), result.references_sha256
            texts.setdefault(digest, Texts(digest, source_lengths, own[1]))
            counts[_key(result)] = Counts(*_key(result), own[0], own[2 : 2 + ORDERS])
        of_counts, of_texts = companions(rows)
        write_rows(of_counts, counts.values())
        write_rows(of_texts, texts.values())
        for path in (of_counts, of_texts):
            path.with_suffix("").unlink(missing_ok=True)


def count_rows(files: Sequence[Path], references: Sequence[Path]) -> None:
    """Adds the counts of rows that have none, as far as their references are given.

    Raises UserError where no row has these references, or hypotheses have changed.
    """
    given, saved = by_checksum(references), read_sentences(files)
    rows = [(path, row) for path in files for row in read_results(path)]
    if not any(row.references_sha256 in given for _, row in rows):
        tests = ", ".join(dict.fromkeys(row.test_set for _, row in rows))
        raise UserError(f"none of the --references are those of {tests}")
    new: dict[tuple[Path, str], list[Result]] = {}
    for path, row in rows:
        if row.references_sha256 in given and not saved.is_counted([row]):
            new.setdefault((path, row.references_sha256), []).append(row)
    for (path, digest), own in new.items():
        results = [(row, read_hypotheses(path.parent, row)) for row in own]
        put_counts(path, results, given[digest][0], source_of(given[digest][0], own[0]))


def sentence_bleu(statistics: Floats) -> list[float]:
    """BLEU of each sentence, of its statistics (N, 10), with the orders that it has n-grams of."""
    return [
        BLEU.compute_bleu(
            row[2 : 2 + ORDERS], row[2 + ORDERS :], row[0], row[1], "exp", effective_order=True
        ).score
        for row in statistics.astype(int).tolist()
    ]


def rescore(files: Sequence[Path], references: Sequence[Path]) -> None:
    """Prints a line for each row. Raises UserError where one differs from its hypotheses."""
    texts = {sha256(path): list(read_lines(path)) for path in references}
    rows, counts, wrong = read_all(files), read_sentences(files), 0
    count = cache(lambda digest: counter(texts[digest]))
    for path, row in rows:
        try:
            own = of_row(row, texts)
            hypotheses = read_hypotheses(path.parent, row)
            faults = differences(row, scores(hypotheses, own))
            expected = counts.statistics(row) if counts.is_counted([row]) else None
            if expected is not None:
                actual = count(row.references_sha256)(hypotheses)
                if (actual != expected).any():
                    faults.append("other n-gram counts")
        except UserError as error:
            faults = [str(error)]
        print(f"{path}\t{row.system}\tseed {row.seed}\t", end="")
        print("; ".join(faults) or f"BLEU {row.bleu:.2f} again")
        wrong += bool(faults)
    if wrong:
        raise UserError(f"{wrong} of {len(rows)} rows differ, or cannot be scored again")


def differences(result: Result, again: Mapping[str, object]) -> list[str]:
    """Fields that differ from those computed again; fields that the row lacks are left out."""
    faults = []
    for name, value in again.items():
        stored = getattr(result, name)
        sides = [without_version(v) if isinstance(v, str) else v for v in (stored, value)]
        if stored not in (None, "") and sides[0] != sides[1]:
            faults.append(f"{name} {stored} stored, {value} now")
    return faults
