"""Moses tokenisation of a corpus, by sacremoses, and its inverse.

The settings are those of fairseq's ``--tokenizer moses``: dashes between letters split off as
``@-@``, and the characters that mean something to Moses escaped (``&apos;``). So a model trained on
this text translates raw sentences through fairseq's own tokenizer without further flags. The only
step that fairseq leaves out is the punctuation normalisation, which is done here first.

Command: ``python -m diet_mt.data.moses IN_DIR OUT_DIR LANG LANG`` for a prepared corpus.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from ..errors import UserError
from .corpus import SPLITS, read_lines, run, write_lines

_CHUNK = 1000  # sentences handed to a worker at a time


@cache
def _tools(lang: str) -> tuple[MosesPunctNormalizer, MosesTokenizer, MosesDetokenizer]:
    return MosesPunctNormalizer(lang), MosesTokenizer(lang), MosesDetokenizer(lang)


def tokenize(text: str, lang: str) -> str:
    """A sentence as tokens joined by single spaces, after normalising its punctuation."""
    normalizer, tokenizer, _ = _tools(lang)
    normal = normalizer.normalize(text)
    return str(tokenizer.tokenize(normal, aggressive_dash_splits=True, return_str=True))


def detokenize(tokens: str, lang: str) -> str:
    """The sentence that ``tokenize`` was given, up to normalisation and unusual spacing."""
    return str(_tools(lang)[2].detokenize(tokens.split()))


def _tokenize_pair(item: tuple[str, str]) -> str:
    return tokenize(*item)


def tokenize_file(source: Path, out: Path, lang: str, workers: int) -> int:
    """Tokenises a file, in order; returns the number of lines.

    Raises:
        UserError: as ``read_lines``; also for a line of which no token remains.
    """
    items = ((line, lang) for line in read_lines(source))
    if workers == 1:
        return write_lines(out, _nonempty(map(_tokenize_pair, items), source))
    with multiprocessing.Pool(workers) as pool:
        return write_lines(out, _nonempty(pool.imap(_tokenize_pair, items, _CHUNK), source))


def _nonempty(lines: Iterable[str], source: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line:
            raise UserError(f"{source}, line {number}: nothing left after tokenisation; remove it")
        yield line


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="diet_mt.data.moses", description="tokenise a corpus")
    parser.add_argument("source", type=Path, help="folder with {train,valid,test}.LANG")
    parser.add_argument("out", type=Path, help="folder to write, same file names")
    parser.add_argument("langs", nargs=2, metavar="LANG")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    args = parser.parse_args(argv)

    def body() -> None:
        if args.workers < 1:
            raise UserError(f"--workers must be at least 1, got {args.workers}")
        args.out.mkdir(parents=True, exist_ok=True)
        for lang in args.langs:
            for split in SPLITS:
                name = f"{split}.{lang}"
                tokenize_file(args.source / name, args.out / name, lang, args.workers)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
