"""Scores every kept result again from its hypotheses; fails where a number differs, or without any.

    python -m diet_mt.cli.rescore results/*.jsonl --references data/multi30k.en-de/raw/test.de

Sentences, BLEU, its bootstrap interval, chrF and the signatures. References are not kept with the
results; a row finds its own among the given ones by checksum.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..data.corpus import read_lines, run
from ..errors import UserError
from ..records import Result, read_results, sha256
from .score import interval, score


def read_references(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Checksum of a file -> its lines. Raises UserError for one that cannot be read strictly."""
    lines = {path: list(read_lines(path)) for path in paths}
    return {sha256(path): lines[path] for path in paths}


def kept_hypotheses(folder: Path, result: Result) -> list[str]:
    """The hypotheses of a row. Raises UserError if they are not the ones that were scored."""
    path = folder / result.hypotheses
    if not path.is_file():
        raise UserError(f"{path}: missing; evaluate {result.system} seed {result.seed} again")
    if sha256(path) != result.hypotheses_sha256:
        raise UserError(f"{path}: changed since it was scored; evaluate again")
    with open(path, encoding="utf-8", newline="\n") as file:
        # Not read_lines: a model may well write nothing at all.
        return file.read().removesuffix("\n").split("\n")


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


def parser_with_references(name: str, description: str | None) -> argparse.ArgumentParser:
    """Arguments of a command that takes results, and the references that they were scored with."""
    parser = argparse.ArgumentParser(
        prog=f"diet_mt.cli.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path, nargs="+", help="files written by evaluate.sh")
    parser.add_argument(
        "--references", type=Path, nargs="+", required=True, help="raw references of the test sets"
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    args = parser_with_references("rescore", __doc__).parse_args(argv)

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
