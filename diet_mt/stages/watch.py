"""Long work that says nothing of its own, in another process: tells how much it has written."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path

from ..errors import UserError
from . import progress
from .child import run_child, why
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
    """Runs ``command`` to its end; what it says goes to the file ``log``. Raises UserError where it
    cannot be run, or fails.

    Args:
        grows: File or folder that it writes, whose size is shown.
    """
    started = time.monotonic()
    with open(log, "wb") as output:
        status = run_child(command, out=output, tell=lambda: _say_size(name, grows, started))
    if status:
        raise UserError(f"{name} failed: {why(status, log)}")


def apart(name: str, function: Callable[..., object], *arguments: object, grows: Path) -> None:
    """Calls a function in a process of its own, for libraries that let nothing else run meanwhile.
    Raises UserError where the process was killed; also what ``function`` raises.
    """
    started = time.monotonic()
    with ProcessPoolExecutor(1, initializer=begin_worker) as executor:
        try:
            worker = executor.submit(os.getpid).result()
            future = executor.submit(function, *arguments)
            try:
                while not wait([future], progress.EVERY_S).done:
                    _say_size(name, grows, started)
            except BaseException:  # the library would go on to its end, whoever interrupts
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGTERM)
                raise
            future.result()
        except BrokenProcessPool:
            raise UserError(f"{name}: its process was killed (out of memory?)") from None


def _say_size(name: str, grows: Path, started: float) -> None:
    megabytes = size_of(grows) / 1e6
    progress.say(f"{name}: {megabytes:,.1f} MB so far, {time.monotonic() - started:.0f} s")
