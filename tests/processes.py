"""``diet-mt`` in this process, waiting for other processes, and what all of them share."""

from __future__ import annotations

import fcntl
import logging
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import psutil
import pytest

from diet_mt.cli.main import main
from diet_mt.corpora.binarized import parts
from diet_mt.system import process
from diet_mt.system.engine import alone

from .commands.fork_server import status_of


def called(*words: object) -> int:
    """The status of ``diet-mt WORDS``."""
    try:
        return main([str(word) for word in words])
    except SystemExit as stop:
        return int(stop.code or 0)


def changed(folder: Path = Path()) -> dict[str, int]:
    """Modification times of all files below a folder, without hidden ones."""
    files = (path for path in folder.rglob("[!.]*") if path.is_file())
    return {str(path): path.stat().st_mtime_ns for path in files}


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """While it lasts, another thread holds the lock of ``folder``."""
    lock = alone(folder)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lock.__enter__).result()
        try:
            yield
        finally:
            thread.submit(lock.__exit__, None, None, None).result()


def wait_until(condition: Callable[[], object], seconds: float = 240) -> None:
    """Returns once it is true; an AssertionError where that takes longer."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never was"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """Under xdist each worker has a folder of its own inside that of the run."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def once(base: Path, name: str, fill: Callable[[Path], object]) -> Path:
    """The folder of this name, filled by a function unless another process has done so."""
    folder, done = base / name, base / f"{name}.done"
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            fill(folder)
            done.touch()
    return folder


class Forked:
    """As ``subprocess.Popen``, of ``python -m MODULE WORDS``: a fork, which has all imports.

    fairseq-preprocess divides files into a fourth of the parts, each of them a process.
    """

    def __init__(
        self,
        command: list[str],
        stdout: IO[bytes],
        stderr: IO[bytes] | int,
        env: dict[str, str],
        **_: Any,
    ) -> None:
        assert command[:2] == [sys.executable, "-m"], command
        self.returncode: int | None = None
        words = command[2:]
        if "--workers" in words:
            number = words.index("--workers") + 1
            words[number] = str(max(1, int(words[number]) // parts(1)))
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid:
            return
        status = 1
        try:
            process.end_with_parent()
            os.dup2(stdout.fileno(), 1)
            os.dup2(1 if isinstance(stderr, int) else stderr.fileno(), 2)
            os.closerange(3, 256)  # locks, for one
            sys.stdout, sys.stderr = (
                open(number, "w", closefd=False)  # noqa: SIM115
                for number in (1, 2)
            )
            logging.root.handlers.clear()
            logging.getLogger("fairseq").setLevel(logging.NOTSET)  # diet-mt has made it quiet
            os.environ.update(env)
            sys.argv = words
            status = status_of(lambda: runpy.run_module(words[0], None, "__main__", True))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float = float("inf")) -> int:
        end = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("fork", timeout)
            time.sleep(0.005)
        return status

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def forking() -> SimpleNamespace:
    """The module ``subprocess`` with forks, for ``diet_mt.system.process``."""
    return SimpleNamespace(**{**vars(subprocess), "Popen": Forked})
