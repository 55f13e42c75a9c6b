"""The theorems of Chen et al. 2021 as numbers, on random draws and on checkpoints.

    diet-mt theorems
    diet-mt theorems checkpoints/sinusoidal.1 checkpoints/diet_abs.1 --data data/multi30k.en-de/bin

Theorem 1: positions added at the input bound the rank of a head's logits by its size, positions in
attention do not. Theorem 2: tables of words and positions that are added at the input have the same
gradients, tables of heads have gradients of their own; this of checkpoints, too. Their ranks are a
figure: diet-mt figures --only rank. Text on stdout. Time: seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser, seed
from ..errors import UserError


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("checkpoints", type=Path, nargs="*", metavar="CHECKPOINT", help="file, or its folder")
    add("--data", type=Path, metavar="BIN", help="their binarized data")
    add("--subset", default="valid", help="of the data, for sentences (default valid)")
    add("--seed", type=seed, default=1, help="of the draws (default 1)")


def run(args: argparse.Namespace) -> None:
    if bool(args.checkpoints) != bool(args.data):
        raise UserError("checkpoints and --data BIN: give both, or neither")
    from ..figures.theorems import report

    print(report(args.checkpoints, args.data, args.subset, args.seed), end="")
