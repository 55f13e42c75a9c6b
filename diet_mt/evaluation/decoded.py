"""What fairseq-generate printed, as sentences in the order of the corpus."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError

# The last line but one of fairseq-generate, with or without a date in front.
_SPEED = re.compile(
    r"Translated [\d,]+ sentences \([\d,]+ tokens\) in [\d.]+s "
    r"\((?P<sentences>[\d.]+) sentences/s, (?P<tokens>[\d.]+) tokens/s\)"
)


@dataclass(frozen=True)
class Decoded:
    """Best hypotheses as the model wrote them, subwords and all, and the rate of decoding."""

    hypotheses: list[str]
    sentences_per_second: float
    tokens_per_second: float


def read_decoded(output: Path, log: Path) -> Decoded:
    """Reads what fairseq-generate wrote; only the first of each n-best list counts.

    ``output``: its standard output; ``log``: its standard error. Which of them gets the log differs
    between distributions. One file for both would not do: a log line could split a hypothesis.
    Raises UserError where a file is missing, was cut off, or leaves out a sentence.
    """
    best: dict[int, str] = {}
    speed = None
    for line in _lines(log) + _lines(output):
        if line.startswith("H-"):
            name, _, text = line.split("\t", 2)
            best.setdefault(int(name[2:]), text)
        elif not line.startswith(("S-", "T-", "D-", "P-", "A-")):
            speed = _SPEED.search(line) or speed
    if speed is None:
        raise UserError(f"{output}: fairseq-generate did not get to its end; run it again")
    missing = next((i for i in range(max(best, default=0) + 1) if i not in best), None)
    if missing is not None:
        raise UserError(
            f"{output}: no hypothesis for sentence {missing} (counted from 0), {len(best)} in all; "
            "decode with --required-batch-size-multiple 1 and without "
            "--skip-invalid-size-inputs-valid-test"
        )
    return Decoded(
        hypotheses=[best[i] for i in range(len(best))],
        sentences_per_second=float(speed["sentences"]),
        tokens_per_second=float(speed["tokens"]),
    )


def _lines(path: Path) -> list[str]:
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            return file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
