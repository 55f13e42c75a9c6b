"""What this machine has, as settings of a training: GPUs, precision, and the batches of an update.

    python -m diet_mt.evaluation.hardware --tokens 25000 --ceiling 8192 --machines 2

Prints one line of five fields: GPUs used on this machine, precision, tokens in one batch on one
GPU, batches that a GPU adds up for one update, and tokens of an update on all machines together.
``scripts/train-wmt18.sh`` reads it.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass

import torch

from ..command_line import run
from ..errors import UserError

PRECISIONS = ("bf16", "fp16", "fp32")
# CUDA's compute capability of the first GPUs that calculate in bfloat16 themselves (Ampere).
_BF16_FROM = (8, 0)


@dataclass(frozen=True)
class Batches:
    """``tokens`` in a batch on a device, ``per_update`` such batches on each, ``total`` on all."""

    tokens: int
    per_update: int
    total: int


def split_update(tokens: int, ceiling: int, devices: int) -> Batches:
    """Shares the tokens of an update among devices that hold at most ``ceiling`` at a time.

    As few batches as possible, all of the same size, so that the sum is the same for any number of
    devices but for rounding: ``total`` differs from ``tokens`` by less than the number of batches.

    Raises:
        UserError: a number is below 1, or there are more devices than tokens.
    """
    numbers = {"tokens of an update": tokens, "tokens on a GPU": ceiling, "devices": devices}
    for name, number in numbers.items():
        if number < 1:
            raise UserError(f"{name}: must be at least 1, got {number}")
    if devices > tokens:
        raise UserError(f"{tokens} tokens cannot be shared among {devices} devices; use fewer")
    per_update = math.ceil(tokens / (devices * ceiling))
    size = tokens // (devices * per_update)
    return Batches(size, per_update, size * devices * per_update)


def precision_for(capabilities: list[tuple[int, int]]) -> str:
    """Of ``PRECISIONS``, the fastest that all GPUs calculate in; fp32 without a GPU."""
    if not capabilities:
        return "fp32"
    return "bf16" if min(capabilities) >= _BF16_FROM else "fp16"


def visible_gpus() -> list[tuple[int, int]]:
    """The compute capability of each GPU that this process may use."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [torch.cuda.get_device_capability(number) for number in range(count)]


def choose(gpus: str, precision: str, seen: list[tuple[int, int]]) -> tuple[int, str]:
    """The number of GPUs and the precision; both ``auto`` or what the user wants.

    Raises:
        UserError: ``gpus`` is no number, or the precision of GPUs that are not there is left open.
    """
    if gpus != "auto" and not gpus.isdecimal():
        raise UserError(f"GPUs: give a number or auto, got '{gpus}'")
    number = len(seen) if gpus == "auto" else int(gpus)
    if precision != "auto":
        return number, precision
    if number > len(seen):
        raise UserError(
            f"{number} GPUs asked for, {len(seen)} found here; set their precision too, one of "
            f"{', '.join(PRECISIONS)}"
        )
    return number, precision_for(seen[:number])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="diet_mt.evaluation.hardware", description="settings of a training for this machine"
    )
    parser.add_argument("--tokens", type=int, required=True, help="tokens of one update")
    parser.add_argument(
        "--ceiling", type=int, required=True, help="tokens that fit on one GPU at a time"
    )
    parser.add_argument("--machines", type=int, default=1, help="all alike (default 1)")
    parser.add_argument("--gpus", default="auto", help="of one machine (default: all it has)")
    parser.add_argument(
        "--precision",
        choices=("auto", *PRECISIONS),
        default="auto",
        help="default: bf16 where all GPUs have it, else fp16; fp32 on a CPU",
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)

    def body() -> None:
        gpus, precision = choose(args.gpus, args.precision, visible_gpus())
        batches = split_update(args.tokens, args.ceiling, args.machines * max(gpus, 1))
        print(gpus, precision, batches.tokens, batches.per_update, batches.total, sep="\t")

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
