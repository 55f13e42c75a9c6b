"""Trains one translation model with fairseq-train, by a recipe.

    diet-mt train data/multi30k.en-de diet_rel_tiny --recipe multi30k --save-dir checkpoints/mine
    ... --seed 2 --dropout 0.2 --max-epoch 20       any option of fairseq-train, over the recipe's
    ... --dry-run                                   prints the command, does nothing
    diet-mt train data/wmt18.de-en diet_rel_base --recipe table4 --save-dir checkpoints/en-de \\
        --source-lang en --target-lang de           on all GPUs of this machine

DATA is a folder made by fairseq-preprocess, or the corpus folder with it; ARCH is ENCODING_SIZE.
Checkpoints, command, log and, in the end, a file `done` go to the folder. Run again, it
continues from the last checkpoint; finished, it does nothing; a folder begun with another command
is refused. Where the recipe has tokens-per-update, an update is the same for any number of GPUs. On
several machines run it once on each, with --nodes, --node-rank and --master, or under Slurm by
srun. What a recipe switches on and you do not want goes into a recipe of your own, with
`extends: NAME` and `OPTION: false`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser
from ._training import add_arguments, add_devices, carry_out, request_of


def arguments(parser: Parser) -> None:
    parser.add_argument("data", type=Path, help="made by diet-mt prepare or fairseq-preprocess")
    parser.add_argument("arch", help="architecture: diet_rel_tiny, sinusoidal_base, ...")
    add_arguments(parser)
    add_devices(parser, "tokens")


def run(args: argparse.Namespace) -> None:
    from ..training.translation import translation

    request = request_of(args)
    training = translation(args.data, args.arch, request, planned=args.dry_run)
    carry_out(training, args)
