"""Scores every kept result again from its hypotheses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import UserError
from .bleu import scores, without_version
from .kept import kept_hypotheses, of_row
from .records import Result, read_all


def rescore(files: Sequence[Path], references: Mapping[str, Sequence[str]]) -> None:
    """Prints a line for each row.

    Raises UserError where a row is not what its hypotheses give, or there are none. ``references``:
    checksum -> lines.
    """
    rows, wrong = read_all(files), 0
    for path, row in rows:
        found = _differences(path, row, references)
        print(f"{path}\t{row.system}\tseed {row.seed}\t", end="")
        print("; ".join(found) or f"BLEU {row.bleu:.2f} again")
        wrong += bool(found)
    if wrong:
        raise UserError(f"{wrong} of {len(rows)} rows differ, or cannot be scored again")


def _differences(path: Path, row: Result, references: Mapping[str, Sequence[str]]) -> list[str]:
    """What of a row is not as its hypotheses give it, or why that is not known."""
    try:
        own = list(of_row(row, references))
        return differences(row, scores(kept_hypotheses(path.parent, row), own))
    except UserError as error:
        return [str(error)]


def differences(result: Result, again: Mapping[str, object]) -> list[str]:
    """What in a row is not what its hypotheses give, of what it has; one phrase each."""
    return [
        f"{name} {stored} stored, {value} now"
        for name, value in again.items()
        if (stored := getattr(result, name)) not in (None, "")
        if _comparable(stored) != _comparable(value)
    ]


def _comparable(value: object) -> object:
    """A signature without its version; a number as it is."""
    return without_version(value) if isinstance(value, str) else value
