"""Long work that says nothing of its own, in another process: tells how much it has written."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import IO

from ..errors import UserError
from . import progress
from .orphans import end_with_parent
from .pool import begin_worker


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; 0 if there is none."""
    if path.is_dir():
        return sum(size_of(entry) for entry in path.iterdir())
    try:
        return path.stat().st_size
    except FileNotFoundError:  # not yet, or no longer
        return 0


def python_module(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of Python, all of whose processes end with their parents."""
    return [sys.executable, "-m", f"{__package__}.orphans", module, *arguments]


def watch(name: str, command: Sequence[str], log: Path, grows: Path) -> None:
    """Runs ``command`` to its end; what it says goes to the file ``log``.

    Args:
        grows: File or folder that it writes, whose size is shown.

    Raises:
        UserError: it cannot be run, or fails.
    """
    started = time.monotonic()
    with open(log, "wb") as output:
        process = start(command, output)
        try:
            while True:
                try:
                    status = process.wait(progress.EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    _say_size(name, grows, started)
        except BaseException:  # interrupted
            process.kill()
            process.wait()
            raise
    if status:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().split("\n")
        ended = f"killed by signal {-status}" if status < 0 else lines[-1]
        raise UserError(f"{name} failed: {ended.removeprefix('error: ')} (all of it in {log})")


def start(command: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts a command that ends with this process. Raises UserError where it cannot be run."""
    # Whatever is installed: the package that is at work here.
    root = str(Path(__file__).resolve().parent.parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # What a Python program says comes in the order in which it says it.
    own = {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "PYTHONPATH": os.pathsep.join(paths)}
    try:
        return subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **own},
            preexec_fn=end_with_parent,
        )
    except OSError as error:
        raise UserError(f"{command[0]}: cannot be run ({error.strerror})") from None


def apart(name: str, function: Callable[..., object], *arguments: object, grows: Path) -> None:
    """Calls a function in a process of its own, for libraries that let nothing else run meanwhile.

    Raises:
        UserError: the process was killed; also what ``function`` raises.
    """
    started = time.monotonic()
    with ProcessPoolExecutor(1, initializer=begin_worker) as executor:
        future = executor.submit(function, *arguments)
        while not wait([future], progress.EVERY_S).done:
            _say_size(name, grows, started)
        try:
            future.result()
        except BrokenProcessPool:
            raise UserError(f"{name}: its process was killed (out of memory?)") from None


def _say_size(name: str, grows: Path, started: float) -> None:
    megabytes = size_of(grows) / 1e6
    progress.say(f"{name}: {megabytes:,.1f} MB so far, {time.monotonic() - started:.0f} s")
