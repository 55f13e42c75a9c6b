"""Records of benchmarks: statistics of rounds, environment, and reading of files."""

from __future__ import annotations

import math
import platform
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

from ..evaluation.json_rows import read_dicts
from ..evaluation.options import fairseq_version, portable, revision, today
from ..system.errors import UserError

Record = dict[str, Any]


def interleaved(
    turns: Mapping[str, Callable[[], float]],
    rounds: int,
    warmup: int,
    label: str,
    until: float = math.inf,
) -> dict[str, list[float]]:
    """Name of a turn -> its seconds in each timed round, without warm-up rounds.

    Turns alternate, in an order that rotates between rounds, so that temporary load on the machine
    affects all of them, and ratios are taken within a round. After ``until`` (time.monotonic), no
    round except the first begins.
    """
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    names = list(turns)
    for number in range(-warmup, rounds):
        if number > 0 and time.monotonic() > until:
            break
        state = "warm-up" if number < 0 else f"round {number + 1} of {rounds}"
        print(f"{label}: {state}", file=sys.stderr)
        first = number % max(len(names), 1)
        for name in names[first:] + names[:first]:
            taken = turns[name]()
            if number >= 0:
                seconds[name].append(taken)
    return seconds


def quartiles(prefix: str, values: Sequence[float]) -> dict[str, float]:
    """Median and quartiles as entries of a record."""
    three = quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * [*values]
    low, median, high = (round(value, 4) for value in three)
    return {f"{prefix}median": median, f"{prefix}low": low, f"{prefix}high": high}


def ratios(values: Sequence[float], baseline: Sequence[float]) -> dict[str, float]:
    """Median and quartiles of the ratios in each round, as entries of a record."""
    pairs = zip(values, baseline, strict=True)
    return quartiles("ratio_", [value / other for value, other in pairs])


def need_device(device: str) -> None:
    """Raises :class:`UserError` if ``device`` is "cuda" and torch has no GPU."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no GPU available to torch")


def environment(device: str, command: str, words: Sequence[str]) -> Record:
    """Machine, versions, date and ``diet-mt COMMAND WORDS``, as entries of a record."""
    import torch

    name = platform.machine()
    if device == "cuda":
        name = torch.cuda.get_device_name(0)
    elif Path("/proc/cpuinfo").is_file():
        models = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("model name")[2]
        name = models.partition("\n")[0].lstrip("\t: ") or name
    return {
        "device": device,
        "machine": name,
        "precision": "fp32",
        "threads": torch.get_num_threads(),
        "date": today(),
        "revision": revision(Path(__file__).parent),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "fairseq": fairseq_version(),
        "command": shlex.join(portable(["diet-mt", *command.split(), *words])),
    }


def circumstances(record: Record) -> str:
    """The entries of :func:`environment` as a line below a table."""
    return (
        f"{record['machine']}, {record['precision']}, threads: {record['threads']}; "
        f"torch {record['torch']}; {record['fairseq']}; "
        f"revision {record['revision'] or 'unknown'}; {record['date']}; `{record['command']}`"
    )


def read_records(files: Sequence[Path], keys: Sequence[str]) -> list[Record]:
    """Rows of JSON files. Raises :class:`UserError` for a row without ``keys`` or an empty file."""
    records = []
    for path in files:
        rows = read_dicts(path, keys)
        if not rows:
            raise UserError(f"{path}: no rows")
        records += rows
    return records
