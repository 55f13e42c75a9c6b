"""Validation perplexity or loss over the updates of training, a curve for each.

    diet-mt bench curves checkpoints/mlm/* --out results/mlm/curves
    diet-mt bench curves checkpoints/mine/* --loss --out results/curves/mine

Reads what diet-mt train and pretrain leave in a training's folder (train.log, command), and curves
that this command wrote before (.jsonl). Writes OUT.jsonl, one training on a line, and OUT.png: all
curves, and their second half on an axis of its own. Trainings that were not validated on the same
sequences, masked as often, by the same loss, are refused.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("logs", type=Path, nargs="+", metavar="LOG", help="folder, train.log, or .jsonl")
    add("--out", type=Path, required=True, metavar="PATH", help="of both files, without suffix")
    add("--loss", action="store_true", help="what --patience looks at, in the place of perplexity")
    add("--svg", action="store_true", help="OUT.svg in the place of OUT.png")


def run(args: argparse.Namespace) -> None:
    from ..bench.curves import draw

    measure = "loss" if args.loss else "perplexity"
    draw(args.logs, args.out, "svg" if args.svg else "png", measure)
