"""What a process and all below it take: memory at its peak, and processor time. Linux only."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


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


@dataclass(frozen=True)
class Process:
    """What /proc says of one."""

    number: int
    parent: int
    cpu: float  # seconds, its own


def processes() -> dict[int, Process]:
    """All that run."""
    found = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has ended
                continue
            number = int(entry.name)
            seconds = (int(fields[11]) + int(fields[12])) / _TICKS
            found[number] = Process(number, int(fields[1]), seconds)
    return found


def below(root: int, running: dict[int, Process]) -> list[Process]:
    """The process ``root`` and its descendants, each after its parent."""
    tree = [running[root]] if root in running else []
    for parent in tree:  # it grows meanwhile
        tree += [process for process in running.values() if process.parent == parent.number]
    return tree


def memory_mib(number: int) -> float:
    """Memory of a process, what it shares with others divided among them."""
    try:
        for line in (_PROC / str(number) / "smaps_rollup").read_text().split("\n"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def _command(number: int) -> str:
    try:
        return (_PROC / str(number) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def main_of(tree: list[Process]) -> int:
    """The one that does a recipe's stage: the shell's child, or what that runs under ``watch``."""
    if len(tree) < 2:
        return 0
    child = tree[1].number
    if " watch " in _command(child):
        return next((process.number for process in tree if process.parent == child), child)
    return child


class Sampler(threading.Thread):
    """Looks at a process tree every so often and adds what it sees to the stage at hand."""

    def __init__(self, root: int, every: float = 0.5) -> None:
        super().__init__(daemon=True)
        self.usage: dict[str, Usage] = {}
        self.stage = ""
        self._root, self._every, self._ended = root, every, threading.Event()

    def run(self) -> None:
        while not self._ended.wait(self._every):
            self.look()

    def look(self) -> None:
        tree = below(self._root, processes())
        if not self.stage or not tree:
            return
        usage = self.usage.setdefault(self.stage, Usage())
        usage.peak_mib = max(usage.peak_mib, sum(memory_mib(process.number) for process in tree))
        usage.mains.add(main_of(tree))
        for process in tree[1:]:
            usage.cpu[process.number] = process.cpu

    def end(self) -> None:
        self._ended.set()
        self.join()
