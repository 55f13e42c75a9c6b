"""The demo corpus: generated English-German sentences in which word order carries the meaning.

    diet-mt prepare demo
    diet-mt prepare demo --train-pairs 5000 --out data/demo5k

Nothing is downloaded. Takes a few seconds and 20 MB. Licence: as this project.
"""

from __future__ import annotations

import argparse

from ...command_line import Parser, positive
from ...corpora.settings import DEMO_SIZES
from .options import add_common, add_text, carry_out, out_of, text_of


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add_common(parser, "data/demo.en-de")
    for split, pairs in DEMO_SIZES.items():
        what = f"at most, and by default, {pairs}"
        add(f"--{split}-pairs", type=positive, default=pairs, metavar="N", help=what)
    add_text(parser, size=1500)


def run(args: argparse.Namespace) -> None:
    from ...corpora.recipes import demo

    sizes = {split: getattr(args, f"{split}_pairs") for split in DEMO_SIZES}
    out, text = out_of(args, "demo.en-de"), text_of(args, "en-de")
    carry_out(demo(out, text, sizes), args.dry_run)
