"""Splits words into subwords: byte-pair encoding of tokens, or SentencePiece on plain text.

Two kinds, named as the recipes name them: ``bpe`` (``bpe.py``) and ``spm`` (``pieces.py``). A
folder that ``fairseq-preprocess`` made holds the model that its text was split with, under the name
of its kind: so it says how a model's output becomes text again.

Commands: ``python -m diet_mt.corpora.subwords learn --kind bpe --size N --out MODEL FILE...``,
``... apply --kind bpe --model MODEL IN_DIR OUT_DIR LANG LANG`` and
``... dictionary --model MODEL OUT`` (``spm`` alone).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from ..command_line import run
from ..errors import UserError
from ..files import write_lines
from ..stages.pool import flat, in_order
from ..stages.progress import ticking
from . import bpe, pieces
from .parallel import convert, read_lines

MODELS = {"bpe": "bpe.codes", "spm": "spm.model"}
_SPLIT = {"bpe": bpe.split, "spm": pieces.split}
_JOIN = {"bpe": bpe.join, "spm": pieces.join}


def kind_of(bin_folder: Path) -> str:
    """Which subwords the data of a folder are made of: "bpe" or "spm".

    Raises:
        UserError: the folder holds the model of neither, or of both.
    """
    found = [kind for kind, name in MODELS.items() if (bin_folder / name).exists()]
    if len(found) == 1:
        return found[0]
    names = " and ".join(MODELS.values()) if found else "neither " + " nor ".join(MODELS.values())
    raise UserError(
        f"{bin_folder}: holds {names}; it should hold the subword model that its text was split "
        "with, and no other: run the recipe in data-prep/ again, or copy the model there"
    )


def join(tokens: str, kind: str) -> str:
    """Undoes the splitting of a line."""
    return _JOIN[kind](tokens)


def split_file(kind: str, model: Path, source: Path, out: Path, workers: int = 1) -> int:
    """Splits the words of a file; returns the number of lines."""
    split = partial(_SPLIT[kind], model=model)
    lines = flat(in_order(split, read_lines(source), workers))
    return write_lines(out, ticking(lines, out.name))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="diet_mt.corpora.subwords", description="BPE and unigrams"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("learn", help="learn the subwords from the training text")
    one.add_argument("--size", type=int, required=True, help="bpe: merges; spm: pieces")
    one.add_argument("--out", type=Path, required=True, help="model to write")
    one.add_argument("--sample", type=int, default=pieces.SAMPLE, help="spm: sentences to look at")
    one.add_argument("--coverage", type=float, default=pieces.COVERAGE, help="spm: of characters")
    one.add_argument("--max-words", type=int, default=bpe.MAX_WORDS, help="bpe: words to look at")
    one.add_argument("files", type=Path, nargs="+")
    two = commands.add_parser("apply", help="split a corpus")
    two.add_argument("--model", type=Path, required=True)
    two.add_argument("source", type=Path, help="folder with {train,valid,test}.LANG")
    two.add_argument("out", type=Path, help="folder to write, same file names")
    two.add_argument("langs", nargs=2, metavar="LANG")
    for command in (one, two):
        command.add_argument("--kind", choices=MODELS, required=True)
        command.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    three = commands.add_parser("dictionary", help="spm: fairseq's dictionary of the pieces")
    three.add_argument("--model", type=Path, required=True)
    three.add_argument("out", type=Path)
    return parser


def _learn(args: argparse.Namespace) -> None:
    if args.kind == "bpe":
        how = {"workers": args.workers, "max_words": args.max_words}
        bpe.learn(args.files, args.out, args.size, **how)
    else:
        pieces.learn(args.files, args.out, args.size, sample=args.sample, coverage=args.coverage)


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)

    def body() -> None:
        if args.command == "learn":
            _learn(args)
        elif args.command == "dictionary":
            pieces.write_dictionary(args.model, args.out)
        else:

            def one(source: Path, out: Path, lang: str) -> int:
                return split_file(args.kind, args.model, source, out, args.workers)

            convert(args.source, args.out, args.langs, one)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
