"""Scores every kept result again from its hypotheses."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from ..errors import UserError
from .bleu import interval, score
from .json_rows import locked, write_rows
from .kept import kept_hypotheses
from .records import Result, read_results

# What older rows do not have.
_ADDED = ("length_ratio", "precisions")


def rescore(
    files: Sequence[Path], references: Mapping[str, Sequence[str]], *, complete: bool = False
) -> None:
    """Prints a line for each row.

    Raises UserError where a row is not what its hypotheses give, or there are none. ``references``:
    checksum -> lines; ``complete``: rows that score as they did get what they were written without.
    """
    count = wrong = 0
    for path in files:
        with locked(path.parent) if complete else nullcontext():
            rows = read_results(path)
            scored = [_again(path, row, references) for row in rows]
            whole = [row if found else new for row, (new, found) in zip(rows, scored, strict=True)]
            if complete and whole != rows:
                write_rows(path, whole)
        count += len(rows)
        wrong += sum(bool(found) for _, found in scored)
    if not count:
        raise UserError("the files hold no results; give those that diet-mt evaluate wrote")
    if wrong:
        raise UserError(f"{wrong} of {count} rows differ, or cannot be scored again")


def _again(
    path: Path, row: Result, references: Mapping[str, Sequence[str]]
) -> tuple[Result, list[str]]:
    """A row with all that its hypotheses give, and what of it was another; prints a line."""
    again: dict[str, object] = {}
    try:
        if row.references_sha256 not in references:
            raise UserError(f"none of the references are those of {row.test_set}")
        again = scores(kept_hypotheses(path.parent, row), list(references[row.references_sha256]))
        found = differences(row, again)
    except UserError as error:
        found = [str(error)]
    print(f"{path}\t{row.system}\tseed {row.seed}\t", end="")
    print("; ".join(found) or f"BLEU {row.bleu:.2f} again")
    lacking = {name: again[name] for name in _ADDED if again and not getattr(row, name)}
    return dataclasses.replace(row, **lacking), found  # type: ignore[arg-type]


def scores(hypotheses: list[str], references: list[str]) -> dict[str, object]:
    """Fields of a row that its hypotheses decide."""
    mean, half = interval(hypotheses, references)
    counted = {"sentences": len(hypotheses), "bleu_mean": mean, "bleu_ci": half}
    return {**counted, **vars(score(hypotheses, references))}


def differences(result: Result, again: Mapping[str, object]) -> list[str]:
    """What in a row is not what its hypotheses give; one phrase each."""
    return [
        f"{name} {stored} stored, {value} now"
        for name, value in again.items()
        if (stored := getattr(result, name)) not in (None, "")
        if _comparable(stored) != _comparable(value)
    ]


def _comparable(value: object) -> object:
    """A signature without SacreBLEU's version, which may have moved on; a number as it is."""
    return re.sub(r"\|version:[^|]*", "", value) if isinstance(value, str) else value
