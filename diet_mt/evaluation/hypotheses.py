"""Saved hypotheses of rows: their text, the counts of their sentences, and verification.

Text is in single files or in one archive per corpus. BLEU of any part of a test set, and of any
resample, follows from integers of each sentence: the n-grams that a hypothesis shares with its
reference, and both lengths. Those of hypotheses are in ``sentences/CORPUS.jsonl.xz``, the lengths
of sources and references in ``sentences/CORPUS.texts.jsonl.xz``.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..corpora.parallel import read_lines, read_sides
from ..system.errors import UserError
from ..system.files import decoded, raw_bytes, sha256, write_text
from .json_rows import Row, locked, read_rows, write_rows
from .records import Result, put_row, read_results, refuse_another, saved_rows
from .scores import ORDERS, Floats, bleu, counter, scores, without_version

Given = TypeVar("Given")


def put_result(
    folder: Path, result: Result, hypotheses: Sequence[str], references: Path, source: Path | None
) -> Path:
    """Adds a row, the text of its hypotheses and their counts to ``folder``, unless they are there;
    returns the file of the row.
    """
    rows = folder / f"{result.file}.jsonl"
    text = "".join(f"{line}\n" for line in hypotheses)
    with locked(folder):
        if _saved(folder, result) != text.encode():
            refuse_another(rows, Result, result.key, vars(result))
            write_text(folder / result.hypotheses, text)
        if result not in saved_rows(Result, rows):
            put_row(folder, result)
        _put_counts(rows, result, hypotheses, references, source)
    return rows


def read_hypotheses(folder: Path, result: Result) -> list[str]:
    """The hypotheses of a row. Raises UserError if they are missing or not those scored."""
    path = folder / result.hypotheses
    content = _saved(folder, result)
    if content is None:
        raise UserError(f"{path}: missing; evaluate {result.system} seed {result.seed} again")
    if hashlib.sha256(content).hexdigest() != result.hypotheses_sha256:
        raise UserError(f"{path}: changed since it was scored; evaluate again")
    return decoded(content, str(path)).split("\n") if content else []


def _saved(folder: Path, result: Result) -> bytes | None:
    """The content of a hypothesis file, on its own or in the archive of the corpus, or None."""
    path, archive = folder / result.hypotheses, folder / f"{result.corpus}.hyp.tar.xz"
    if path.is_file():
        return path.read_bytes()
    return _files_in(archive).get(result.hypotheses) if archive.is_file() else None


@lru_cache(maxsize=4)
def _files_in(archive: Path) -> Mapping[str, bytes]:
    """Name -> content of the hypothesis files of a corpus, packed by scripts/results.sh."""
    files, content = {}, raw_bytes(archive)
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as opened:
            for member in opened:
                # Links and holes could multiply the content.
                plain = member.isreg() and not member.issparse()
                if plain and (file := opened.extractfile(member)):
                    files[member.name] = file.read()
    except (tarfile.TarError, OSError) as error:
        raise UserError(f"{archive}: damaged archive ({error})") from None
    return files


def of_row(result: Result, references: Mapping[str, Given]) -> Given:
    """The entry of ``references``, by checksum, for a row. Raises UserError for none."""
    if result.references_sha256 not in references:
        row = f"{result.system} on {result.test_set}, {result.direction}"
        raise UserError(f"no reference file matches {row}")
    return references[result.references_sha256]


def source_of(references: Path, direction: str) -> Path | None:
    """The source ``test.en`` of references ``test.de``, or both with ``.gz``; None: missing."""
    source, _, target = direction.partition("-")
    for end in ("", ".gz"):
        stem = references.name.removesuffix(f".{target}{end}")
        path = references.with_name(f"{stem}.{source}{end}")
        if stem != references.name and path.is_file():
            return path
    return None


@dataclass(frozen=True)
class Counts(Row):
    """Counts of a file of hypotheses: ``lengths`` (N), in tokens (BLEU's, 13a); ``matches``
    (orders, N), n-grams shared with the reference.
    """

    hypotheses_sha256: str
    references_sha256: str
    lengths: list[int]
    matches: list[list[int]]

    @property
    def key(self) -> tuple[str, str]:
        return self.hypotheses_sha256, self.references_sha256

    def statistics(self, references: Sequence[int]) -> Floats:
        """(N, 10), as from ``scores.counter``; ``references``: lengths (N)."""
        totals = [[max(length - order, 0) for length in self.lengths] for order in range(ORDERS)]
        columns = [self.lengths, references, *self.matches, *totals]
        return np.array(columns, dtype=np.float64).T


@dataclass(frozen=True)
class Texts(Row):
    """Lengths of a test set: sources in words (empty: no sources), references in 13a tokens."""

    references_sha256: str
    source_lengths: list[int]
    reference_lengths: list[int]

    @property
    def key(self) -> str:
        return self.references_sha256


@dataclass(frozen=True)
class Sentences:
    """``counts`` by checksums of hypotheses and references; ``texts`` by checksum of references."""

    counts: Mapping[tuple[str, str], Counts]
    texts: Mapping[str, Texts]

    def statistics(self, result: Result) -> Floats:
        """(N, 10), as from ``scores.counter``. Raises UserError for a row without counts."""
        if _key(result) not in self.counts:
            which = f"{result.system}, seed {result.seed}"
            raise UserError(f"{result.corpus}: no sentence counts of {which}; evaluate again")
        references = self.texts[result.references_sha256].reference_lengths
        return self.counts[_key(result)].statistics(references)


def _key(result: Result) -> tuple[str, str]:
    return result.hypotheses_sha256, result.references_sha256


def companions(results: Path) -> tuple[Path, Path]:
    """The files of counts and of texts of a file of results."""
    folder = results.parent / "sentences"
    return folder / f"{results.name}.xz", folder / f"{results.stem}.texts.jsonl.xz"


def read_sentences(files: Iterable[Path]) -> Sentences:
    """The counts and texts saved with files of results. Raises UserError if they do not match."""
    counts: dict[tuple[str, str], Counts] = {}
    texts: dict[str, Texts] = {}
    for of_counts, of_texts in map(companions, files):
        if of_counts.exists() and of_texts.exists():
            texts |= {row.key: row for row in read_rows(Texts, of_texts)}
            own = {row.key: row for row in read_rows(Counts, of_counts)}
            counts |= own
            for each in own.values():
                text = texts.get(each.references_sha256)
                sizes = [len(column) for column in (each.lengths, *each.matches)]
                if text is None or sizes != [len(text.reference_lengths)] * (1 + ORDERS):
                    raise UserError(f"{of_counts}: does not match the sentences of {of_texts}")
    return Sentences(counts, texts)


def _put_counts(
    rows: Path, result: Result, hypotheses: Sequence[str], references: Path, source: Path | None
) -> None:
    """Adds counts and texts of a result to those of ``rows``, and drops counts without a row."""
    saved, digest = read_sentences([rows]), result.references_sha256
    if _key(result) in saved.counts and (saved.texts[digest].source_lengths or not source):
        return
    wanted = {_key(row) for row in read_results(rows)}
    counts = {key: each for key, each in saved.counts.items() if key in wanted}
    sides = read_sides(source, references) if source else ([], list(read_lines(references)))
    lengths, of_references, *others = counter(sides[1])(hypotheses).astype(int).T.tolist()
    counts[_key(result)] = Counts(*_key(result), lengths, others[:ORDERS])
    new = Texts(digest, [len(line.split()) for line in sides[0]], of_references)
    old = {key: each for key, each in saved.texts.items() if key != digest or each.source_lengths}
    of_counts, of_texts = companions(rows)
    # Counts without their texts would be an error, should an interruption separate the two.
    write_rows(of_texts, {digest: new, **old}.values())
    write_rows(of_counts, counts.values())


def rescore(files: Sequence[Path], references: Sequence[Path]) -> None:
    """Scores hypotheses again, or BLEU alone by their counts if they are not stored, and prints a
    line for each row. Raises UserError for a difference.
    """
    texts = {sha256(path): list(read_lines(path)) for path in references}
    counters = {digest: counter(lines) for digest, lines in texts.items()}
    rows = [(path, row) for path in files for row in read_results(path)]
    counts, wrong = read_sentences(files), 0
    for path, row in rows:
        ok = f"OK, BLEU {row.bleu:.2f}"
        try:
            own, saved = of_row(row, texts), counts.statistics(row)
            if _saved(path.parent, row) is None:
                ok += " by counts alone: hypotheses not stored"
                faults = differences(row, {"bleu": round(float(bleu(saved.sum(axis=0))), 4)})
            else:
                hypotheses = read_hypotheses(path.parent, row)
                faults = differences(row, scores(hypotheses, own))
                if (counters[row.references_sha256](hypotheses) != saved).any():
                    faults.append("other n-gram counts")
        except UserError as error:
            faults = [str(error)]
        print(path, row.system, f"seed {row.seed}", "; ".join(faults) or ok, sep="\t")
        wrong += bool(faults)
    if wrong or not rows:
        raise UserError(f"{wrong} of {len(rows)} rows differ, or cannot be scored again")


def differences(result: Result, again: Mapping[str, object]) -> list[str]:
    """Fields of a row that differ from those computed ``again``, SacreBLEU's version apart."""
    faults = []
    for name, value in again.items():
        stored = getattr(result, name)
        sides = [without_version(v) if isinstance(v, str) else v for v in (stored, value)]
        if sides[0] != sides[1]:
            faults.append(f"{name} {stored} stored, {value} now")
    return faults
