"""Scores every kept result again from its hypotheses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import UserError
from .hypotheses import of_row, read_hypotheses
from .records import Result, read_all
from .resampling import counter
from .scores import scores, without_version
from .sentences import Kept, read_sentences


def rescore(files: Sequence[Path], references: Mapping[str, Sequence[str]]) -> None:
    """Prints a line for each row.

    Raises UserError where a row is not what its hypotheses give, or there are none. ``references``:
    checksum -> lines.
    """
    rows, wrong = read_all(files), 0
    kept = read_sentences(files)
    for path, row in rows:
        found = _differences(path, row, references, kept)
        print(f"{path}\t{row.system}\tseed {row.seed}\t", end="")
        print("; ".join(found) or f"BLEU {row.bleu:.2f} again")
        wrong += bool(found)
    if wrong:
        raise UserError(f"{wrong} of {len(rows)} rows differ, or cannot be scored again")


def _differences(
    path: Path, row: Result, references: Mapping[str, Sequence[str]], kept: Kept
) -> list[str]:
    """What of a row its hypotheses do not give, or why they cannot be scored."""
    try:
        own = list(of_row(row, references))
        hypotheses = read_hypotheses(path.parent, row)
        different = differences(row, scores(hypotheses, own))
        if kept.is_counted([row]) and (counter(own)(hypotheses) != kept.statistics(row)).any():
            different.append("other n-gram counts")
    except UserError as error:
        return [str(error)]
    return different


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
