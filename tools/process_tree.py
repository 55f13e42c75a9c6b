"""What a process and all below it take: memory at its peak, and processor time. Linux only."""

from __future__ import annotations

import threading
from collections.abc import Container
from dataclasses import dataclass, field

import psutil


@dataclass
class Usage:
    """Of one stage."""

    peak_mib: float = 0.0  # of all its processes together, shared memory counted once
    cpu: dict[int, float] = field(default_factory=dict)  # process: seconds
    mains: set[int] = field(default_factory=set)  # one after the other; all others work for them

    @property
    def total_cpu(self) -> float:
        return sum(self.cpu.values())

    @property
    def main_cpu(self) -> float:
        return sum(seconds for number, seconds in self.cpu.items() if number in self.mains)


class Sampler(threading.Thread):
    """Looks at a process tree every so often and adds what it sees to the stage at hand.

    ``apart``: stages that the process leaves to a child of its own.
    """

    def __init__(self, root: int, apart: Container[str] = (), every_s: float = 0.5) -> None:
        super().__init__(daemon=True)
        self.usage: dict[str, Usage] = {}
        self._root, self._apart, self._every_s = psutil.Process(root), apart, every_s
        self._stage, self._before = "", 0.0
        self._ended = threading.Event()

    @property
    def stage(self) -> str:
        return self._stage

    @stage.setter
    def stage(self, name: str) -> None:
        self._stage, self._before = name, _cpu(self._root)

    def run(self) -> None:
        while not self._ended.wait(self._every_s):
            self.look()

    def look(self) -> None:
        """Adds what the processes take now."""
        try:
            below = self._root.children(recursive=True)
        except psutil.NoSuchProcess:
            return
        if not self._stage:
            return
        usage = self.usage.setdefault(self._stage, Usage())
        usage.peak_mib = max(usage.peak_mib, sum(map(memory_mib, (self._root, *below))))
        usage.cpu[self._root.pid] = _cpu(self._root) - self._before
        for process in below:
            usage.cpu[process.pid] = max(usage.cpu.get(process.pid, 0), _cpu(process))
        if self._stage in self._apart:
            usage.mains.update(
                process.pid for process in below if _parent(process) == self._root.pid
            )
        else:
            usage.mains.add(self._root.pid)

    def end(self) -> None:
        self._ended.set()
        self.join()


def memory_mib(process: psutil.Process) -> float:
    """Memory of a process, what it shares with others divided among them; 0 if it has ended."""
    try:
        return float(process.memory_full_info().pss) / (1 << 20)
    except psutil.Error:
        return 0.0


def _cpu(process: psutil.Process) -> float:
    """Seconds, its own."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _parent(process: psutil.Process) -> int:
    try:
        return int(process.ppid())
    except psutil.Error:
        return 0
