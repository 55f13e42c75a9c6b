"""A program that runs beside this one, ends with it, and is spoken of every few seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from ..errors import UserError
from . import progress
from .orphans import end_with_parent

_TAIL = 1 << 16  # bytes of a log that are looked at


def module(name: str, words: Sequence[str]) -> list[str]:
    """The command that runs a module by the same Python, as ``fairseq-train`` runs its own."""
    return [sys.executable, "-m", name, *words]


def run_child(
    command: Sequence[str],
    *,
    out: IO[bytes],
    err: IO[bytes] | None = None,
    tell: Callable[[], None] = lambda: None,
) -> int:
    """Runs a program to its end; its status, negative where a signal ended it.

    Args:
        out: takes what it prints.
        err: takes its messages; None: with the rest.
        tell: called every progress.EVERY_S.

    Raises:
        UserError: it cannot be run.
    """
    process = start(command, out, err)
    try:
        while True:
            try:
                return process.wait(progress.EVERY_S)
            except subprocess.TimeoutExpired:
                tell()
    except BaseException:  # interrupted: it goes first
        process.kill()
        process.wait()
        raise


def start(command: Sequence[str], out: IO[bytes], err: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """Starts a program that ends with this one. Raises UserError where it cannot be run."""
    # Whatever is installed: the package that is at work here.
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # What a Python program says comes in the order in which it says it.
    own = {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "PYTHONPATH": os.pathsep.join(paths)}
    try:
        return subprocess.Popen(
            command,
            stdout=out,
            stderr=err or subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **own},
            preexec_fn=end_with_parent,
        )
    except OSError as error:
        raise UserError(f"{command[0]}: cannot be run ({error.strerror})") from None


def why(status: int, log: Path) -> str:
    """In a line, why a program failed that wrote ``log``, which is named."""
    tail = tail_of(log).strip().split("\n")[-1].removeprefix("error: ")
    if status < 0:
        tail = f"killed by signal {-status}" + (", out of memory?" if status == -9 else "")
    return f"{tail or f'status {status}'} (all of it in {log})"


def tail_of(log: Path) -> str:
    """The end of a file; nothing where there is none."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
