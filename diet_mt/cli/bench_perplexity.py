"""Validation perplexity over the updates of pretraining, a curve for each training.

    diet-mt bench perplexity checkpoints/mlm/* --out results/mlm/curves

Reads what diet-mt pretrain leaves in a training's folder (train.log, command), and curves that this
command wrote before (.jsonl). Writes OUT.jsonl, one training on a line, and OUT.png: all curves,
and their second half on an axis of its own. Trainings that were not validated on the same
sequences, masked as often, are refused.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("logs", type=Path, nargs="+", metavar="LOG", help="folder, train.log, or .jsonl")
    add("--out", type=Path, required=True, metavar="PATH", help="of both files, without suffix")
    add("--svg", action="store_true", help="OUT.svg in the place of OUT.png")


def run(args: argparse.Namespace) -> None:
    from ..bench.perplexity import draw

    draw(args.logs, args.out, "svg" if args.svg else "png")
