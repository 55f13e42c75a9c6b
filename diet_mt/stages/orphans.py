"""Processes that end when the one that started them is killed, so that none goes on writing.

``python -m diet_mt.stages.orphans MODULE ARGUMENT...`` runs a module whose own processes do so.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG in <sys/prctl.h>


def end_with_parent() -> None:
    """From now on this process is killed when its parent dies. Does nothing but on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def run_module(module: str, arguments: list[str]) -> None:
    """Runs a module as ``python -m`` does, in this process."""
    os.register_at_fork(after_in_child=end_with_parent)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run_module(sys.argv[1], sys.argv[2:])
