"""Processes that end when the one that started them is killed, so that none goes on writing."""

from __future__ import annotations

import ctypes
import signal
import sys

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG in <sys/prctl.h>


def end_with_parent() -> None:
    """From now on this process is killed when its parent dies. Does nothing but on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
