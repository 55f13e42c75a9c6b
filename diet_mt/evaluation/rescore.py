"""Scores every kept result again from its hypotheses; fails where a number differs, or without any.

    diet-mt verify results/*.jsonl --references data/multi30k.en-de/raw/test.de

Sentences, BLEU, its bootstrap interval, chrF and the signatures. References are not kept with the
results; a row finds its own among the given ones by checksum.
"""

from __future__ import annotations

import re
import sys

from ..command_line import run
from ..errors import UserError
from .bleu import interval, score
from .kept import kept_hypotheses, parser_with_references, read_references
from .records import Result, read_results


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


def main(argv: list[str] | None = None) -> int:
    args = parser_with_references("verify", __doc__).parse_args(argv)

    def body() -> None:
        references = read_references(args.references)
        rows = [(path, row) for path in args.results for row in read_results(path)]
        if not rows:
            raise UserError("the files hold no results; give those that evaluate.sh wrote")
        wrong = 0
        for path, row in rows:
            try:
                if row.references_sha256 not in references:
                    raise UserError(f"none of the references are those of {row.test_set}")
                found = differences(
                    row, kept_hypotheses(path.parent, row), references[row.references_sha256]
                )
            except UserError as error:
                found = [str(error)]
            wrong += bool(found)
            outcome = "; ".join(found) or f"BLEU {row.bleu:.2f} again"
            print(f"{path}\t{row.system}\tseed {row.seed}\t{outcome}")
        if wrong:
            raise UserError(f"{wrong} of {len(rows)} rows differ")

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
