"""Draws what trained positions look like, as Chen et al. 2021 do, and says which heads are local.

    diet-mt figures checkpoints/diet_abs.1 checkpoints/diet_rel.1 --data data/multi30k.en-de/bin \\
        --out figures
    ... --only patterns heads
    diet-mt figures --out figures          # the same pictures, of the numbers in this folder alone

CHECKPOINT is a file, or a folder with a checkpoint_best.pt, of a translation or masked language
model. Each figure is a PNG, an SVG, and its numbers as JSON lines:

    rank        of logits and positional logits; spectrum: their          paper, figures 2 and 8
                singular values
    patterns    positional logits by head: heat maps, and curves where    figures 4 and 7
                they depend on the distance alone
    similarity  of positions to each other, at the input and in factors   figure 5
    segments    patterns over 32 tokens, the second segment from 16 on    figure 6
    heads       which heads look near, and how far away: a table on stdout

The logits are those of the model's own attention, in float64, the biases of its projections
included. Of models with fewer positions than --rank-tokens or --positions all are shown over as
many as every one has. Rank and curves say how many positions training had, by the longest sentences
of the data's training split, where they show more. Time: half a minute for three tiny models.
"""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

from ..command_line import Parser, count, positive
from ..errors import UserError
from ..figures.asked import Asked
from ._tables import format_argument, show

FIGURES = ("rank", "patterns", "similarity", "segments", "heads")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("checkpoints", type=Path, nargs="*", metavar="CHECKPOINT",
        help="file, or its folder; none: pictures of the numbers in --out")  # fmt: skip
    add("--data", type=Path, metavar="BIN", help="binarized, as they were trained on")
    add("--out", type=Path, required=True, metavar="FOLDER", help="for pictures and numbers")
    add("--only", nargs="+", choices=FIGURES, default=FIGURES, help="of the figures (default all)")
    format_argument(parser)
    add("--subset", help=f"of the data, for sentences (default {Asked.subset})")
    add("--sentences", type=positive, metavar="N", help=f"how many (default {Asked.sentences})")
    add(
        "--rank-tokens", type=positive, metavar="N",
        help=f"of joined sentences, for rank (default {Asked.rank_tokens})",
    )  # fmt: skip
    add(
        "--positions", type=positive, metavar="N",
        help=f"in patterns, similarity and heads (default {Asked.positions})",
    )  # fmt: skip
    add("--near", type=count, metavar="K", help=f"tokens that are near (default {Asked.near})")


def run(args: argparse.Namespace) -> None:
    names = (field.name for field in fields(Asked))
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    if args.checkpoints and not args.data:
        raise UserError("--data: give the binarized data that the checkpoints were trained on")
    if not args.checkpoints and (args.data or given):
        option = next(iter(given), "data").replace("_", "-")
        raise UserError(
            f"--{option}: only with checkpoints; without, pictures show --out's numbers"
        )
    asked = Asked(**given)
    from ..figures.draw import draw, kept, observe_all

    if args.checkpoints:
        files = observe_all(args.checkpoints, args.data, args.out, args.only, asked)
    else:
        files = kept(args.out, args.only)
    for file in files:
        if table := draw(file):
            show(table, args.format)
