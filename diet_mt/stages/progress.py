"""How far a long loop has come: a line on stderr every few seconds, and one at its end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

VARIABLE = "PROGRESS"  # seconds from one line to the next
_USUAL = 10.0


def seconds_between() -> float:
    """Seconds from one progress line to the next: the variable PROGRESS, or 10."""
    try:
        return float(os.environ.get(VARIABLE, _USUAL))
    except ValueError:
        return _USUAL


def say(text: str) -> None:
    """A line of the kind that tells how far a stage is."""
    print(f"   {text}", file=sys.stderr, flush=True)


class Progress:
    """Counts what a loop has done and says so, not more often than every few seconds."""

    def __init__(self, what: str, unit: str = "lines") -> None:
        self.what, self.unit, self.count = what, unit, 0.0
        self._every = seconds_between()
        self._started = self._said = time.monotonic()

    def add(self, count: float) -> None:
        """``count`` more are done."""
        self.count += count
        now = time.monotonic()
        if now - self._said >= self._every:
            self._said = now
            say(self._line(now))

    def done(self) -> None:
        """The loop has ended."""
        say(self._line(time.monotonic()))

    def _line(self, now: float) -> str:
        seconds = max(now - self._started, 1e-3)
        rate = f"{self.count / seconds:,.0f} {self.unit}/s"
        return f"{self.what}: {self.count:,.0f} {self.unit}, {rate}, {seconds:.0f} s"


def ticking(items: Iterable[T], what: str) -> Iterator[T]:
    """Yields the items, reporting them as lines."""
    progress = Progress(what)
    for item in items:
        yield item
        progress.add(1)
    progress.done()
