"""Kept hypotheses, and the references they were scored with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from ..corpora.parallel import read_lines
from ..errors import UserError
from ..files import decoded_lines, sha256
from .records import Result

Given = TypeVar("Given")


def read_references(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Checksum of a file -> its lines. Raises UserError for one that cannot be read strictly."""
    lines = {path: list(read_lines(path)) for path in paths}
    return {sha256(path): lines[path] for path in paths}


def kept_hypotheses(folder: Path, result: Result, count: int | None = None) -> list[str]:
    """The hypotheses of a row; ``count``: of its references. Raises UserError if they are not the
    ones that were scored, or not as many.
    """
    path = folder / result.hypotheses
    if not path.is_file():
        raise UserError(f"{path}: missing; evaluate {result.system} seed {result.seed} again")
    if sha256(path) != result.hypotheses_sha256:
        raise UserError(f"{path}: changed since it was scored; evaluate again")
    lines = [line for _, line in decoded_lines(path)]  # a model may well write nothing at all
    if count not in (None, len(lines)):
        raise UserError(f"{path}: not {count} lines; evaluate again")
    return lines


def of_row(result: Result, references: Mapping[str, Given]) -> Given:
    """What is given for the references of a row. Raises UserError where these are not among them.

    ``references``: by checksum.
    """
    if result.references_sha256 not in references:
        raise UserError(
            f"none of the references are those of {result.test_set}, {result.direction}, with "
            f"{result.sentences:,} lines, that {result.system} was scored with"
        )
    return references[result.references_sha256]


def by_checksum(
    references: Sequence[Path], sources: Sequence[Path]
) -> dict[str, tuple[Path, Path | None]]:
    """Checksum of references -> their file, and that of their sources where these are given, in the
    same order. Raises UserError where they are not as many.
    """
    if sources and len(sources) != len(references):
        raise UserError(f"{len(sources)} --sources, but {len(references)} --references")
    pairs = zip_longest(references, sources)
    return {sha256(path): (path, source) for path, source in pairs}


def sources_beside(references: Path, result: Result) -> Path | None:
    """``test.en`` of ``test.de``, ``test.en.gz`` of ``test.de.gz``; None where there is none."""
    source, _, target = result.direction.partition("-")
    for end in (f".{target}", f".{target}.gz"):
        if references.name.endswith(end):
            stem = references.name.removesuffix(end)
            path = references.with_name(f"{stem}.{source}{end[len(target) + 1 :]}")
            if path.is_file():
                return path
    return None
