"""Scores every kept result again from its hypotheses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import UserError
from .bleu import interval, score
from .kept import kept_hypotheses
from .records import Result, read_results


def rescore(files: Sequence[Path], references: Mapping[str, Sequence[str]]) -> None:
    """Prints a line for each row. ``references``: checksum -> lines.

    Raises UserError where a row is not what its hypotheses give, or there are none.
    """
    rows = [(path, row) for path in files for row in read_results(path)]
    if not rows:
        raise UserError("the files hold no results; give those that diet-mt evaluate wrote")
    wrong = 0
    for path, row in rows:
        try:
            if row.references_sha256 not in references:
                raise UserError(f"none of the references are those of {row.test_set}")
            hypotheses = kept_hypotheses(path.parent, row)
            found = differences(row, hypotheses, list(references[row.references_sha256]))
        except UserError as error:
            found = [str(error)]
        wrong += bool(found)
        outcome = "; ".join(found) or f"BLEU {row.bleu:.2f} again"
        print(f"{path}\t{row.system}\tseed {row.seed}\t{outcome}")
    if wrong:
        raise UserError(f"{wrong} of {len(rows)} rows differ, or cannot be scored again")


def differences(result: Result, hypotheses: list[str], references: list[str]) -> list[str]:
    """What in a row is not what its hypotheses give; one phrase each."""
    again = {"sentences": len(hypotheses), **vars(score(hypotheses, references))}
    again["bleu_mean"], again["bleu_ci"] = interval(hypotheses, references)
    found = []
    for name, value in again.items():
        stored = getattr(result, name)
        if _comparable(stored) != _comparable(value):
            found.append(f"{name} {stored} stored, {value} now")
    return found


def _comparable(value: object) -> object:
    """A signature without SacreBLEU's version, which may have moved on; a number as it is."""
    return re.sub(r"\|version:[^|]*", "", value) if isinstance(value, str) else value
