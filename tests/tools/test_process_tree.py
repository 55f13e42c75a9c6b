"""What a tree of processes takes, looked at on one of our own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tools import process_tree

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")

# A process that works, and has a child that holds 64 MiB.
PROGRAM = (
    "import subprocess, sys, time\n"
    "held = subprocess.Popen([sys.executable, '-c', 'x = b\"x\" * (64 << 20); input()'],"
    " stdin=subprocess.PIPE)\n"
    "input()\n"
    "end = time.process_time() + 0.5\n"
    "while time.process_time() < end: pass\n"
    "print('ready', flush=True)\n"
    "input()\n"
)


def test_all_descendants_count() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, text=True, **pipes) as main:  # type: ignore[call-overload]
        sampler = process_tree.Sampler(main.pid, apart=("bin",))
        sampler.look()
        assert sampler.usage == {}  # no stage has begun
        deadline = time.monotonic() + 30
        sampler.stage = "bin"
        while not sampler.usage.get("bin") or sampler.usage["bin"].peak_mib <= 64:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            sampler.look()
        (child,) = psutil.Process(main.pid).children()
        assert sampler.usage["bin"].mains == {child.pid}
        sampler.stage = "tok"
        main.stdin.write("\n")
        main.stdin.flush()
        assert main.stdout.readline() == "ready\n"
        sampler.look()
        usage = sampler.usage["tok"]
        main.communicate("\n")
    sampler.look()  # it has ended
    assert 64 < usage.peak_mib < 640
    assert usage.mains == {main.pid}
    assert 0.4 <= usage.main_cpu <= usage.total_cpu  # 0.5 s, in the kernel's ticks
    assert process_tree.memory_mib(child) == 0.0
