"""What all processes of one run of the tests share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


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
