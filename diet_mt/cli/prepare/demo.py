"""The demo corpus: generated English-German sentences in which word order carries the meaning.

    diet-mt prepare demo
    diet-mt prepare demo --train-pairs 50000 --out data/demo50k

Nothing is downloaded. Takes a quarter of a minute and 20 MB. Licence: as this project.
"""

from __future__ import annotations

import argparse

from ...command_line import Parser, positive, seed
from .options import add_common, add_text, carry_out, out_of, text_of

SIZES = {"train": 20000, "valid": 500, "test": 500}


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add_common(parser, "data/demo.en-de")
    for split, pairs in SIZES.items():
        add(f"--{split}-pairs", type=positive, default=pairs, metavar="N", help=f"default {pairs}")
    add("--seed", type=seed, default=1, metavar="N", help="of the sentences (default 1)")
    add_text(parser, size=1500)


def run(args: argparse.Namespace) -> None:
    from ...corpora import word_order

    sizes = {split: getattr(args, f"{split}_pairs") for split in SIZES}
    out, text = out_of(args, "demo.en-de"), text_of(args, "en-de")
    carry_out(word_order.preparation(out, text, sizes, args.seed), args.dry_run)
