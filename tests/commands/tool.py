"""Runs ``diet-mt`` as a user does, in a process group of its own, which a test may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .runner import ENVIRONMENT, ROOT, SECONDS


def start(*words: object, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "diet_mt", *map(str, words)],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    """What it says on both sides, once it has ended."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == status, (out + err)[-4000:]
    return out + err


def run(*words: object, cwd: Path, status: int = 0, **environment: str) -> str:
    return finish(start(*words, cwd=cwd, **environment), status)


def kill_when(process: subprocess.Popen[str], there: Path, *, alone: bool = False) -> None:
    """SIGKILL for it and all it started, or for itself alone, as soon as a file is there."""
    for _ in range(100 * SECONDS):
        if there.exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    if alone:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
