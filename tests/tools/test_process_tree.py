"""What a tree of processes takes, looked at on one of our own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import process_tree

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")

# A shell whose child works, and has a child of its own that holds 64 MiB.
PROGRAM = (
    "import subprocess, sys, time\n"
    "held = subprocess.Popen([sys.executable, '-c', 'x = b\"x\" * (64 << 20); input()'],"
    " stdin=subprocess.PIPE)\n"
    "end = time.process_time() + 0.5\n"
    "while time.process_time() < end: pass\n"
    "print('ready', flush=True)\n"
    "input()\n"
)


def test_all_descendants_count() -> None:
    command = ["bash", "-c", '"$0" -c "$1"; exit', sys.executable, PROGRAM]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as shell:  # type: ignore[call-overload]
        sampler = process_tree.Sampler(shell.pid)
        sampler.stage = "tok"
        assert shell.stdout.readline() == "ready\n"
        tree = process_tree.below(shell.pid, process_tree.processes())
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            sampler.look()
            if sampler.usage["tok"].peak_mib > 64:
                break
            time.sleep(0.1)
        shell.communicate("\n")
    usage = sampler.usage["tok"]
    assert len(tree) == 3
    assert 64 < usage.peak_mib < 640
    assert usage.mains - {0} == {tree[1].number}
    assert 0.5 <= usage.main_cpu <= usage.total_cpu
    assert process_tree.memory_mib(tree[1].number) == 0.0  # it has ended


def test_our_own_process_is_there() -> None:
    running = process_tree.processes()
    assert running[os.getpid()].parent == os.getppid()
    assert process_tree.memory_mib(os.getpid()) > 1
    assert process_tree.below(-1, running) == []
