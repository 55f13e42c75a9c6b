"""Turns what a model wrote back into text, for SacreBLEU and for people.

Joins the subwords and, where these are byte-pair codes of Moses tokens, undoes the tokenisation,
line by line. An empty line, the translation of a model that said nothing, stays an empty line: the
lines keep their numbers.

Command: ``python -m diet_mt.corpora.detokenize LANG [--subwords bpe|spm] <TOKENS >TEXT``
"""

from __future__ import annotations

import argparse
import sys

from ..command_line import run
from ..errors import UserError
from .moses import detokenize
from .subwords import MODELS, join


def to_text(tokens: str, lang: str, subwords: str) -> str:
    """The sentence for one line of a model's output.

    Args:
        subwords: "bpe" (on Moses tokens) or "spm" (on plain text), as ``subwords.kind_of`` says.
    """
    joined = join(tokens, subwords)
    return detokenize(joined, lang) if subwords == "bpe" else joined


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="diet_mt.corpora.detokenize",
        description="join subwords and detokenise, stdin to stdout",
    )
    parser.add_argument("lang", metavar="LANG", help="language of the text, such as de")
    parser.add_argument("--subwords", choices=MODELS, default="bpe", help="default bpe")
    args = parser.parse_args(argv)

    def body() -> None:
        for number, raw in enumerate(sys.stdin.buffer, start=1):  # split on \n alone
            try:
                tokens = raw.decode("utf-8").removesuffix("\n")
            except UnicodeDecodeError:
                raise UserError(f"standard input, line {number}: not valid UTF-8") from None
            sys.stdout.buffer.write(
                (to_text(tokens, args.lang, args.subwords) + "\n").encode("utf-8")
            )
        sys.stdout.buffer.flush()

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
