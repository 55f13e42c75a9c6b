"""Pretrains an encoder as a masked language model, by a recipe.

    diet-mt pretrain data/mlm.en diet_rel --recipe mlm --save-dir checkpoints/mlm/diet_rel.1
    diet-mt pretrain data/mlm.xx diet_abs --recipe mlm-multilingual --save-dir ...
    diet-mt pretrain data/mlm.en learned --recipe mlm --size tiny --max-update 2000 \\
        --save-interval-updates 200 --validate-interval-updates 200 --sequences-per-update 64 \\
        --lr 0.001 --save-dir ...                         a small one
    ... --dry-run                                         prints the command, does nothing

Any option of fairseq-train may be given, over the recipe's. An update sees the same number of
sequences whatever the number of GPUs. Run again, it continues; finished, it does nothing. Time:
weeks on one recent GPU for the base size (an estimate). Disk: (3 + kept checkpoints) x 1.3 GB.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser, need_known
from ._training import SEGMENTS, add_arguments, add_devices, carry_out, request_of


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("data", type=Path, help="made by diet-mt prepare mlm")
    add("system", help="encoding: learned, diet_rel, diet_abs, ...")
    add("--size", default="base", help="tiny, small or base (default base)")
    add("--segments", dest="segment_encoding", choices=SEGMENTS,
        help="where segments enter (default: the recipe's, none)")  # fmt: skip
    add_arguments(parser)
    add_devices(parser, "sequences")


def run(args: argparse.Namespace) -> None:
    from ..evaluation.fairseq_options import import_fairseq

    request = request_of(args)
    import_fairseq()
    from ..models._architectures import ROBERTA_SIZES
    from ..positions import COMMAND_NAMES
    from ..training.pretraining import masked_lm

    need_known("encoding", [args.system.replace("-", "_")], COMMAND_NAMES)
    need_known("size", [args.size], ROBERTA_SIZES)
    carry_out(masked_lm(args.data, args.system, args.size, request), args)
