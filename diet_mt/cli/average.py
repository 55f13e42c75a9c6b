"""Averages the weights of several checkpoints of one training, as Vaswani et al. 2017 did.

    diet-mt average --last 5 --dir checkpoints/x --out checkpoints/x/checkpoint_average.pt
    diet-mt average A.pt B.pt C.pt --out checkpoint_average.pt

The outcome decodes like any checkpoint. It says what it was made of, and holds no optimizer state:
a training cannot go on from it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser, need_file, positive
from ..errors import UserError


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("checkpoints", nargs="*", type=Path, metavar="FILE", help="or --last and --dir")
    add("--last", type=positive, metavar="N", help="the latest N numbered checkpoints")
    add("--dir", type=Path, metavar="FOLDER", help="of this folder")
    add("--out", type=Path, required=True, metavar="FILE", help="checkpoint to write")
    add("--dry-run", action="store_true", help="only say what would be averaged")


def run(args: argparse.Namespace) -> None:
    if (args.last is None) != (args.dir is None) or bool(args.checkpoints) == bool(args.dir):
        raise UserError("give either checkpoints or --last N --dir FOLDER")
    from ..evaluation.average import average, last_checkpoints, save

    paths = args.checkpoints or last_checkpoints(args.dir, args.last)
    if args.out.is_dir():
        raise UserError(f"--out {args.out}: a folder; give the name of a file")
    for path in paths:
        need_file(path, "checkpoint")
    if not args.dry_run:
        save(average(paths), args.out)
    print(f"{args.out}\tthe mean of {', '.join(path.name for path in paths)}")
