"""Saved hypotheses, as single files or one archive per corpus, and their references."""

from __future__ import annotations

import hashlib
import lzma
import tarfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from ..errors import UserError
from ..files import decoded, sha256, write_text
from .json_rows import locked
from .records import Result, need_place, put_row_of, read_results

Given = TypeVar("Given")
_LARGEST = 1 << 28  # bytes of an unpacked archive


def put_result(folder: Path, result: Result, text: str) -> Path:
    """Adds a row and the text of its hypotheses to ``folder``; returns the file of the row.

    Nothing is written where both are there. Safe for several processes at a time. Raises UserError
    where the row with these hypotheses is of another training or test set.
    """
    rows = folder / f"{result.file}.jsonl"
    with locked(folder):
        content = _saved(folder, result)
        if content is not None and hashlib.sha256(content).hexdigest() == result.hypotheses_sha256:
            if rows.exists() and result in read_results(rows):
                return rows
        else:
            need_place(folder, Result, result.file, result.key, vars(result))
            write_text(folder / result.hypotheses, text)
        return put_row_of(folder, result)


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
    """The file of hypotheses, or its copy in the archive of the corpus; None: neither."""
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
    references: Sequence[Path], sources: Sequence[Path]
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
