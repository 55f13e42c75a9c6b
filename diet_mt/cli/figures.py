"""Draws what trained positions look like, as Chen et al. 2021 do, and says which heads are local.

    diet-mt figures checkpoints/diet_abs.1 checkpoints/diet_rel.1 --data data/multi30k.en-de/bin \\
        --out figures
    ... --only patterns heads

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
many as every one has. How many positions training had, by the longest sentences of the data's
training split, is said where more are shown. Time: half a minute for three tiny models.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser, count, filled, positive
from ..errors import UserError

FIGURES = ("rank", "patterns", "similarity", "segments", "heads")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("checkpoints", type=Path, nargs="+", metavar="CHECKPOINT", help="file, or its folder")
    add(
        "--data", type=Path, required=True, metavar="BIN", help="binarized, as they were trained on"
    )
    add("--out", type=Path, required=True, metavar="FOLDER", help="for pictures and numbers")
    add("--only", nargs="+", choices=FIGURES, default=FIGURES, help="of the figures (default all)")
    add("--subset", default="valid", help="of the data, for sentences (default valid)")
    add("--sentences", type=positive, default=32, help="how many (default 32)")
    add(
        "--rank-tokens", type=positive, default=96, metavar="N",
        help="of joined sentences, for rank (default 96)",
    )  # fmt: skip
    add(
        "--positions", type=positive, default=32, metavar="N",
        help="in patterns, similarity and heads (default 32)",
    )  # fmt: skip
    add("--near", type=count, default=2, metavar="K", help="tokens that are near (default 2)")


def run(args: argparse.Namespace) -> None:
    least = 2 * args.near + 2  # so that the last position is not near the first half
    if args.positions < least:
        raise UserError(
            f"--positions {args.positions}: with --near {args.near} give {least} or more"
        )
    from ..figures.draw import draw_all
    from ..figures.observed import Asked

    draw_all(args.checkpoints, args.data, args.out, args.only, filled(Asked, args))
