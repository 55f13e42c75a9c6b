"""What measurements say about the machine, and what those that take them have in common."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..errors import UserError
from ..evaluation.commands import portable
from ..evaluation.json_rows import read_dicts
from ..evaluation.provenance import fairseq_version, revision, today
from .process.timing import clocked, interleaved, rounds_on_stderr


def machine(device: str, half: bool, command: str) -> dict[str, Any]:
    """The circumstances of a measurement, as entries of its record."""
    name = torch.cuda.get_device_name(0) if device == "cuda" else _processor()
    return {
        "device": device,
        "machine": name,
        "precision": "fp16" if half else "fp32",
        "threads": torch.get_num_threads(),
        "date": today(),
        "revision": revision(Path(__file__).parent),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "fairseq": fairseq_version(),
        "command": command,
    }


def _processor() -> str:
    """The processor's name, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def need_device(device: str) -> None:
    """Raises UserError where ``device`` is a GPU and there is none."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch finds no GPU")


def take_turns(
    cases: Mapping[str, Callable[[], None]], label: str, device: str, rounds: int, warmup: int
) -> dict[str, list[float]]:
    """:func:`interleaved` on ``device``, with a line on stderr for each round of ``label``."""
    settle = torch.cuda.synchronize if device == "cuda" else lambda: None
    return interleaved(
        {name: clocked(case, settle) for name, case in cases.items()},
        rounds=rounds,
        warmup=warmup,
        progress=rounds_on_stderr(label, rounds),
    )


def command_of(name: str, words: Sequence[str]) -> str:
    """``diet-mt NAME WORDS``, for a record; folders of this machine are shortened."""
    return portable(shlex.join(["diet-mt", *name.split(), *words]))


def read_records(files: Sequence[Path], keys: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON lines of all files.

    Raises UserError where they cannot be read, are none, or lack one of ``keys``.
    """
    found = []
    for path in files:
        records = read_dicts(path, dict.fromkeys(keys, Any))
        if not records:
            raise UserError(f"{path}: holds no measurements")
        found += records
    return found


def taken(record: Mapping[str, Any]) -> str:
    """What :func:`machine` has put into a record, as tables say it."""
    return (
        f"{record['machine']}, {record['precision']}, threads: {record['threads']}; "
        f"torch {record['torch']}; {record['fairseq']}; "
        f"revision {record['revision'] or 'unknown'}; {record['date']}; `{record['command']}`"
    )


Rows = dict[str, dict[str, dict[str, Any]]]  # by what is measured, then by measure


def grouped(
    records: Sequence[dict[str, Any]], what: str, where: Callable[[dict[str, Any]], tuple[str, str]]
) -> dict[tuple[str, str], Rows]:
    """Records by title and circumstances; ``what``: their entry that is a row's name; ``where``:
    the title, and circumstances that :func:`taken` does not tell.
    """
    groups: dict[tuple[str, str], Rows] = {}
    for record in records:
        title, more = where(record)
        rows = groups.setdefault((title, f"{more}; {taken(record)}"), {})
        rows.setdefault(record[what], {})[record["measure"]] = record
    return groups
