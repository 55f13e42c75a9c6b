"""A program that runs beside this one, ends with it, and is spoken of every few seconds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from ..errors import UserError
from . import progress
from .orphans import end_with_parent

_HERE = Path(__file__).resolve().parents[2]  # where the package is
_TAIL = 1 << 16  # bytes of a log that are looked at
_LAST = 4000  # characters of it that tell why a program failed, and not one before it
_NO_ROOM = 1 << 24  # bytes: with less, a checkpoint finds none
# What the operating system and torch say where a file finds no room.
_FULL = re.compile(
    r"No space left on device|File too large|Disk quota exceeded|PytorchStreamWriter failed writing"
    r"|unexpected pos \d+ vs \d+"
)
_UNFINISHED = ("*.tmp", "*.part")


def module(name: str, words: Sequence[str]) -> list[str]:
    """The command that runs a module by the same Python, as ``fairseq-train`` runs its own."""
    return [sys.executable, "-m", name, *words]


def run_child(
    command: Sequence[str],
    *,
    out: IO[bytes],
    tell: Callable[[], None],
    err: IO[bytes] | None = None,
) -> int:
    """Runs a program to its end; its status, negative where a signal ended it. Raises UserError
    where it cannot be run.

    Args:
        out: takes what it prints.
        tell: called every progress.EVERY_S.
        err: takes its messages; None: with the rest.
    """
    process = start(command, out, err=err)
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


def environment() -> dict[str, str]:
    """Of a program: in Python, it has the package that is at work here, whatever is installed."""
    found = dict(os.environ)
    # What it says comes in the order in which it says it, also before a kill.
    found |= {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    found["PYTHONIOENCODING"] = "utf-8:backslashreplace"  # before all of that, where it is set
    if str(_HERE) not in sysconfig.get_paths().values():  # a checkout
        found["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_HERE), found.get("PYTHONPATH")]))
    return found


def start(
    command: Sequence[str],
    out: IO[bytes],
    *,
    err: IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program that ends with this one; ``env``: by default :func:`environment`. Raises
    UserError where it cannot be run.
    """
    try:
        return subprocess.Popen(
            command,
            stdout=out,
            stderr=err or subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment() if env is None else env,
            preexec_fn=end_with_parent,
        )
    except OSError as error:
        raise UserError(f"{command[0]}: cannot be run ({error.strerror})") from None


def why(status: int, log: Path) -> str:
    """In a line, why a program failed that wrote ``log``, which is named.

    Where the disk is full, that is why, and the file that it was writing is said: the log itself
    may have found no room.
    """
    said = tail_of(log).strip()[-_LAST:]
    tail = said.split("\n")[-1].removeprefix("error: ")
    if status < 0:
        tail = f"killed by signal {-status}" + (", out of memory?" if status == -9 else "")
    elif is_full(log.parent, said):
        tail = f"no space is left for {_unfinished(log)}; make room and run again"
    return f"{tail or f'status {status}'} (all of it in {log})"


def is_full(folder: Path, said: str) -> bool:
    """Whether a program that wrote to ``folder``, and said this, found no room there."""
    return bool(_FULL.search(said)) or shutil.disk_usage(folder).free < _NO_ROOM


def _unfinished(log: Path) -> Path:
    """What was being written in the folder of ``log``, under its final name; else the folder."""
    found = [path for end in _UNFINISHED for path in log.parent.glob(end)]
    if not found:
        return log.parent
    return max(found, key=lambda path: path.stat().st_mtime_ns).with_suffix("")


def tail_of(log: Path) -> str:
    """The end of a file; nothing where there is none."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
