"""Devices and precision of a training, and the division of an update among devices."""

from __future__ import annotations

import math
import os
import subprocess
from dataclasses import dataclass

from ..system.errors import UserError
from ..system.options import Count, Positive, option

PRECISIONS = ("bf16", "fp16", "fp32")
# Lowest CUDA compute capability with bfloat16 arithmetic (Ampere).
_BF16_FROM = (8, 0)
_PORT = 29500


@dataclass(frozen=True)
class Batches:
    """Batches of one update, in tokens or sequences."""

    tokens: int  # of a batch on one device
    per_update: int  # batches on each device
    total: int  # tokens of the update, on all devices


def split_update(tokens: int, ceiling: int, devices: int) -> Batches:
    """Divides the tokens (or sequences) of an update among devices that hold at most ``ceiling``.

    Batches are as few as possible and have the same size: ``total`` is at most ``tokens``, and the
    difference is less than the number of batches. Raises :class:`UserError` if devices have none.
    """
    per_update = math.ceil(tokens / max(devices * ceiling, 1))
    size = tokens // max(devices * per_update, 1)
    if min(devices, ceiling, size) < 1:
        raise UserError(f"{tokens} cannot be divided among {devices} devices of {ceiling}")
    return Batches(size, per_update, size * devices * per_update)


def visible_gpus() -> list[tuple[int, int]]:
    """CUDA compute capability of each visible GPU."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [torch.cuda.get_device_capability(number) for number in range(count)]


def choose(gpus: str, precision: str, seen: list[tuple[int, int]]) -> tuple[int, str]:
    """Number of GPUs, and precision. Raises UserError for an invalid number.

    ``auto``: all of ``seen`` (compute capabilities); bf16 if all support it, else fp16; CPU: fp32.
    """
    if gpus != "auto" and not gpus.isdecimal():
        raise UserError(f"--gpus {gpus}: give a number or auto")
    number = len(seen) if gpus == "auto" else int(gpus)
    if precision != "auto":
        return number, precision
    if number > len(seen):
        hint = f"give --precision, one of {', '.join(PRECISIONS)}"
        raise UserError(f"--gpus {number}: this machine has {len(seen)}; {hint}")
    if not number:
        return 0, "fp32"
    return number, "bf16" if min(seen[:number]) >= _BF16_FROM else "fp16"


@dataclass(frozen=True)
class Machines:
    """Devices."""

    gpus: str = option(
        "number of GPUs to use on this machine; auto: all; 0: CPU", "auto", metavar="N"
    )
    precision: str = option(
        "auto: bf16 if all GPUs support it, else fp16; fp32 on a CPU (default: the recipe's)",
        "auto",
        choices=("auto", "fp32", "fp16", "bf16"),
    )
    nodes: Positive = option(
        "number of identical machines that share the save-dir (default 1, or Slurm's)",
        1,
        usual=lambda: os.environ.get("SLURM_STEP_NUM_NODES", "1"),
    )
    node_rank: Count = option(
        "rank of this machine, from 0 (default 0, or Slurm's)",
        0,
        usual=lambda: os.environ.get("SLURM_NODEID", "0"),
    )
    master: str = option("address of machine 0 (default: Slurm's)", "", metavar="HOST:PORT")

    def __post_init__(self) -> None:
        if not 0 <= self.node_rank < self.nodes:
            raise UserError(f"--node-rank {self.node_rank}: expected 0 to {self.nodes - 1}")


@dataclass(frozen=True)
class Place:
    """Devices and processes of a training, with fairseq-train's options for them."""

    gpus: int
    precision: str
    processes: int  # on all machines
    launch: list[str]  # options that do not determine the result


def place_of(machines: Machines) -> Place:
    """The devices of a training on this machine. Raises :class:`UserError` for invalid options."""
    is_open = "auto" in (machines.gpus, machines.precision)
    seen = visible_gpus() if is_open else []
    gpus, precision = choose(machines.gpus, machines.precision, seen)
    each = max(gpus, 1)
    launch = [] if gpus else ["--cpu"]
    if machines.nodes > 1:
        if machines.gpus not in ("auto", "0"):
            hint = "with several machines, set CUDA_VISIBLE_DEVICES instead"
            raise UserError(f"--gpus {machines.gpus}: {hint}")
        launch += ["--distributed-init-method", f"tcp://{machines.master or _slurm_master()}"]
        launch += ["--distributed-rank", str(machines.node_rank * each)]
        if not gpus:
            # fairseq starts processes only for GPUs, and its backend pytorch_ddp needs GPUs.
            launch += ["--distributed-no-spawn", "--distributed-backend", "gloo"]
            launch += ["--ddp-backend", "legacy_ddp"]
    return Place(gpus, precision, machines.nodes * each, launch)


def _slurm_master() -> str:
    """HOST:PORT of the first machine of this Slurm step. Raises :class:`UserError` without one."""
    nodes = os.environ.get("SLURM_STEP_NODELIST")
    if not nodes:
        raise UserError("--nodes: give --master HOST:PORT of machine 0, too")
    command = ["scontrol", "show", "hostnames", nodes]
    try:
        hosts = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"scontrol: {error}; give --master HOST:PORT of machine 0") from None
    return f"{hosts[0]}:{_PORT}"
