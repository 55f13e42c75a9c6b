"""The demo corpus: English sentences and German translations in which word order carries meaning.

German puts the verb second or last and splits it; English says by order who does what to whom. A
model that sees its source as a bag of words cannot tell "the dog sees the cat" from "the cat sees
the dog", nor which adjective belongs to which noun, nor which clause comes first.

Command: ``python -m diet_mt.corpora.word_order --out DIR --train 20000 --valid 500 --test 500``
writes train.en, train.de, valid.en, ...: the same bytes for the same arguments and ``--seed``,
everywhere.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

from ..command_line import run
from ..errors import UserError
from ..files import writing
from .clauses.english import english
from .clauses.german import german
from .clauses.plan import Sentence
from .clauses.sample import Sampler
from .clauses.swap import swapped
from .parallel import SPLITS

SHORTEST, LONGEST = 5, 20  # words in a sentence, on either side
_TWINS = 0.35  # how often a sentence is followed by the one with its roles swapped


def pairs(seed: int) -> Iterator[tuple[str, str]]:
    """Yields (English, German) without end; neither side ever comes twice."""
    rng = Random(seed)
    sampler = Sampler(rng)
    seen: set[str] = set()
    while True:
        for sentence in _with_twin(sampler.sentence(), rng):
            source, target = english(sentence), german(sentence)
            lengths = len(source.split()), len(target.split())
            if min(lengths) < SHORTEST or max(lengths) > LONGEST:
                continue
            if source in seen or target in seen:
                continue
            seen.update((source, target))
            yield source, target


def _with_twin(sentence: Sentence, rng: Random) -> Iterator[Sentence]:
    yield sentence
    twin = swapped(sentence)
    if twin is not None and rng.random() < _TWINS:
        yield twin


def generate(out: Path, sizes: dict[str, int], seed: int) -> None:
    """Writes ``sizes[split]`` pairs of each split to ``out``; no sentence is in two of them.

    Raises:
        UserError: a size is below 1.
    """
    for split, size in sizes.items():
        if size < 1:
            raise UserError(f"--{split} must be at least 1, got {size}")
    out.mkdir(parents=True, exist_ok=True)
    stream = pairs(seed)
    # The small splits first: the test set stays the same when the training set grows.
    for split in sorted(sizes, key=SPLITS.index, reverse=True):
        with ExitStack() as stack:
            files = [stack.enter_context(writing(out / f"{split}.{lang}")) for lang in ("en", "de")]
            for _ in range(sizes[split]):
                for file, text in zip(files, next(stream), strict=True):
                    file.write(text + "\n")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="diet_mt.corpora.word_order", description="demo corpus")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--train", type=int, default=20000, help="pairs (default 20000)")
    parser.add_argument("--valid", type=int, default=500, help="pairs (default 500)")
    parser.add_argument("--test", type=int, default=500, help="pairs (default 500)")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    args = parser.parse_args(argv)
    sizes = {"train": args.train, "valid": args.valid, "test": args.test}
    return run(lambda: generate(args.out, sizes, args.seed))


if __name__ == "__main__":
    sys.exit(main())
