"""What the commands that train have in common."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ..command_line import Parser, count, filled, place, positive, seed

if TYPE_CHECKING:
    from ..training.build import Training, TrainingRequest

SEGMENTS = ("none", "input", "per-head")
# Options of fairseq-train, or beside them, that only some of the commands have.
_GIVEN = ("tokens_per_update", "sequences_per_update", "max_tokens_per_device", "segment_encoding")


def add_arguments(parser: Parser) -> None:
    """The recipe, the folder, and whatever fairseq-train takes."""
    parser.passes_on = True
    parser.set_defaults(**dict.fromkeys(_GIVEN), nodes=1, node_rank=0, master="")
    add = parser.add_argument
    add("--recipe", required=True, metavar="NAME", help="config/NAME.yaml, or a file FILE.yaml")
    add("--seed", type=seed, default=1, help="default 1")
    add("--save-dir", type=place, required=True, metavar="DIR", help="folder of checkpoints")
    add(
        "--precision",
        default="",
        choices=("auto", "fp32", "fp16", "bf16"),
        help="auto: bf16 where all GPUs have it, else fp16; fp32 on a CPU (default: the recipe's)",
    )
    add("--dry-run", action="store_true", help="print the fairseq-train command, do nothing")


def add_devices(parser: Parser, unit: str) -> None:
    """How an update of so many units (tokens, sequences) is shared."""
    add = parser.add_argument
    add("--gpus", default="auto", metavar="N", help="of this machine; 0: its CPU (default auto)")
    add(
        f"--{unit}-per-update",
        type=positive,
        metavar="N",
        help=f"{unit} of an update on all devices together (default: the recipe's)",
    )
    add(
        "--max-tokens-per-device",
        type=positive,
        metavar="N",
        help="tokens that fit on one device at a time (default: the recipe's)",
    )
    # As text, which is read as what a user gives.
    nodes = os.environ.get("SLURM_STEP_NUM_NODES", "1")
    rank = os.environ.get("SLURM_NODEID", "0")
    add("--nodes", type=positive, default=nodes, help="machines, all alike (default 1, or Slurm's)")
    add("--node-rank", type=count, default=rank, help="of this machine (default 0, or Slurm's)")
    add("--master", default="", metavar="HOST:PORT", help="of machine 0 (default: Slurm's)")


def request_of(args: argparse.Namespace) -> TrainingRequest:
    """What was asked for."""
    from ..recipes import load
    from ..training.build import TrainingRequest
    from ..training.devices import Machines
    from ..training.options import parse

    given = parse(args.passed)
    for name in _GIVEN:
        if value := getattr(args, name):
            given[name.replace("_", "-")] = [str(value)]
    machines = filled(Machines, args)
    return TrainingRequest(load(args.recipe), args.save_dir, args.seed, given, machines)


def carry_out(training: Training, args: argparse.Namespace) -> None:
    """Trains, or prints what would be run."""
    from ..corpora.binarized import need_whole
    from ..training.check import check, need_splits
    from ..training.devices import need_gpus
    from ..training.run import refuse_another, train

    def look() -> None:
        need_gpus(args.gpus)
        check(training, args.known)
        need_splits(training)
        need_whole(training.data, besides="test")

    if args.dry_run:
        refuse_another(training)
        check(training, args.known)
        print(training.command())
    else:
        train(training, look)
