"""Byte-pair encoding of a tokenised corpus, one code for both languages, by subword-nmt.

Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with Subword Units",
arXiv:1508.07909. A subword that its word continues after ends in ``@@``.

Commands: ``python -m diet_mt.data.subwords learn --merges N --out CODES FILE...`` and
``python -m diet_mt.data.subwords apply --codes CODES IN_DIR OUT_DIR LANG LANG``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from ..errors import UserError
from .corpus import SPLITS, read_lines, run, write_lines, writing

_SEPARATOR = "@@"


def learn(files: Iterable[Path], out: Path, merges: int) -> None:
    """Learns ``merges`` merge operations from all files together and writes them to ``out``.

    Memory grows with the number of different words, not with the text.

    Raises:
        UserError: ``merges`` is below 1, or as ``read_lines``.
    """
    if merges < 1:
        raise UserError(f"number of BPE merges must be at least 1, got {merges}")
    counts: Counter[str] = Counter()
    for file in files:
        for line in read_lines(file):
            counts.update(line.split())
    words = [f"{word} {count}" for word, count in sorted(counts.items())]
    with writing(out) as codes:
        learn_bpe(words, codes, merges, is_dict=True)


def load(codes: Path) -> BPE:
    """The encoder for a code file of ``learn``; its method ``process_line`` splits a line."""
    with open(codes, encoding="utf-8", newline="\n") as file:
        return BPE(file, separator=_SEPARATOR)


def join(tokens: str) -> str:
    """Undoes the splitting: ``"see@@ ing it"`` becomes ``"seeing it"``."""
    return (tokens + " ").replace(_SEPARATOR + " ", "").rstrip()


def apply_file(bpe: BPE, source: Path, out: Path) -> int:
    """Splits the words of a file; returns the number of lines."""
    return write_lines(out, (bpe.process_line(line) for line in read_lines(source)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="diet_mt.data.subwords", description="joint BPE")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("learn", help="learn the code from tokenised files")
    one.add_argument("--merges", type=int, required=True, help="number of merge operations")
    one.add_argument("--out", type=Path, required=True, help="code file to write")
    one.add_argument("files", type=Path, nargs="+")
    two = commands.add_parser("apply", help="split the words of a tokenised corpus")
    two.add_argument("--codes", type=Path, required=True)
    two.add_argument("source", type=Path, help="folder with {train,valid,test}.LANG")
    two.add_argument("out", type=Path, help="folder to write, same file names")
    two.add_argument("langs", nargs=2, metavar="LANG")
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)

    def body() -> None:
        if args.command == "learn":
            learn(args.files, args.out, args.merges)
            return
        bpe = load(args.codes)
        args.out.mkdir(parents=True, exist_ok=True)
        for lang in args.langs:
            for split in SPLITS:
                apply_file(bpe, args.source / f"{split}.{lang}", args.out / f"{split}.{lang}")

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
