"""Progress of long loops and trainings on stderr: a bar in a terminal, otherwise lines."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

EVERY_S = 10.0  # seconds between lines
_TAIL = 1 << 16  # bytes of a log that are read
# A line of fairseq-train's log, as text (epoch 003: 12 / 134 loss=4.1, ...) or as JSON.
_EPOCH = re.compile(r"epoch (\d+):\s+(\d+) / (\d+) ")
_FIELD = re.compile(r'(\w+)(?:=|": "?)([\w.]+)')
_END = re.compile(r"--max-(update|epoch) (\d+)")


def say(text: str) -> None:
    """Prints an indented line, for progress within a stage."""
    print(f"   {text}", file=sys.stderr, flush=True)


def announce(text: str) -> None:
    """Prints a line without an indent, for the start and end of a stage."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """``3 min 20 s``"""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 600 else f"{minutes} min {rest} s"


def teller(name: object, status: Callable[[], str]) -> Callable[[], None]:
    """A function that prints ``status()``, with the seconds since this call, if it has changed."""
    started, printed = time.monotonic(), ""

    def tell() -> None:
        nonlocal printed
        if (line := status()) != printed:
            printed = line
            say(f"{name}: {line}, {time.monotonic() - started:.0f} s")

    return tell


class Progress:
    """Counter of a loop that prints its progress; ``total``: final count, 0 if unknown."""

    def __init__(self, what: str, unit: str = "lines", total: float = 0) -> None:
        from tqdm import tqdm  # not needed for --help

        self.what, self.unit, self.total, self.count = what, unit, total, 0.0
        self._started = self._printed = time.monotonic()
        self._bar = tqdm(
            desc=f"   {what}", unit=f" {unit}", unit_scale=True, leave=False,
            total=total or None, disable=not sys.stderr.isatty(),
        )  # fmt: skip

    def add(self, count: float) -> None:
        """Advances the counter by ``count``."""
        self.count += count
        self._bar.update(count)
        now = time.monotonic()
        if self._bar.disable and now - self._printed >= EVERY_S:
            self._printed = now
            say(self._line(now))

    def done(self) -> None:
        """Ends the progress display."""
        self._bar.close()
        say(self._line(time.monotonic()))

    def _line(self, now: float) -> str:
        seconds = max(now - self._started, 1e-3)
        line = f"{self.what}: {self.count:,.0f} {self.unit}"
        if 0 < self.count < self.total:
            left = seconds * (self.total / self.count - 1)
            line += f" ({self.count / self.total:.0%}, {duration(left)} left)"
        return f"{line}, {self.count / seconds:,.0f} {self.unit}/s, {seconds:.0f} s"


def ticking(items: Iterable[T], what: str, unit: str = "lines") -> Iterator[T]:
    """Yields the items and prints their progress."""
    progress = Progress(what, unit, length_hint(items))
    for item in items:
        yield item
        progress.add(1)
    progress.done()


def tail_of(log: Path) -> str:
    """The last 64 KiB of a file as text; empty if it cannot be read."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


def training_status(log: str, command: str = "") -> str:
    """``epoch 3, 1200 updates, loss 4.1 (12%, 9 min 3 s left)``; empty before a logged update.

    ``log``: end of fairseq-train's log; ``command``: its command, with --max-update or --max-epoch.
    """
    lines = [line for line in log.split("\n") if "train_inner" in line and "num_updates" in line]
    if not lines:
        return ""
    fields = dict(_FIELD.findall(lines[-1]))
    updates = int(fields["num_updates"])
    if place := _EPOCH.search(lines[-1]):
        epoch, step, steps = map(int, place.groups())
        epochs = epoch - 1 + step / steps
    elif "update" in fields:
        epoch, epochs = int(fields["epoch"]), float(fields["update"])
    else:
        return ""
    status = f"epoch {epoch}, {updates} updates, loss {fields['loss']}"
    done = {"update": updates, "epoch": epochs}
    share = max((done[unit] / int(end) for unit, end in _END.findall(command)), default=0)
    rate = float(fields.get("ups", 0))
    if 0 < share < 1 and rate:
        status += f" ({share:.0%}, {duration(updates * (1 / share - 1) / rate)} left)"
    return status
