"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil


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
