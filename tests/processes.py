"""``diet-mt`` in this process, waiting for other processes, and what all of them share."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from diet_mt.cli.main import main
from diet_mt.system.engine import alone


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
