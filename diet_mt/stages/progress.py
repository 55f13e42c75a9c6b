"""How far a long loop has come, on stderr: a bar in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

EVERY_S = 10.0  # from one line to the next
# A line of fairseq-train's log, as text and as JSON.
_STATUS = re.compile(
    r"train_inner \| epoch 0*(\d+):.*? loss=([\d.]+),.* num_updates=(\d+),"
    r"|train_inner \| \{\"epoch\": (\d+),.*?\"loss\": \"([\d.]+)\",.*?\"num_updates\": \"(\d+)\""
)


def say(text: str) -> None:
    """A line of the kind that tells how far a stage is."""
    print(f"   {text}", file=sys.stderr, flush=True)


def announce(text: str) -> None:
    """A line of the kind that says what begins, or is ready: one without an indent."""
    print(text, file=sys.stderr, flush=True)


class Progress:
    """Counts what a loop has done and says so."""

    def __init__(self, what: str, unit: str = "lines") -> None:
        self.what, self.unit, self.count = what, unit, 0.0
        self._started = self._said = time.monotonic()
        self._bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(desc=f"   {what}", unit=f" {unit}", unit_scale=True, leave=False)

    def add(self, count: float) -> None:
        """``count`` more are done."""
        self.count += count
        if self._bar is not None:
            self._bar.update(count)
            return
        now = time.monotonic()
        if now - self._said >= EVERY_S:
            self._said = now
            say(self._line(now))

    def done(self) -> None:
        """The loop has ended."""
        if self._bar is not None:
            self._bar.close()
        say(self._line(time.monotonic()))

    def _line(self, now: float) -> str:
        seconds = max(now - self._started, 1e-3)
        rate = f"{self.count / seconds:,.0f} {self.unit}/s"
        return f"{self.what}: {self.count:,.0f} {self.unit}, {rate}, {seconds:.0f} s"


def ticking(items: Iterable[T], what: str, unit: str = "lines") -> Iterator[T]:
    """Yields the items, and says how far it is."""
    progress = Progress(what, unit)
    for item in items:
        yield item
        progress.add(1)
    progress.done()


def status_of(log: str, before: str = "starting") -> str:
    """``epoch 3, 1200 updates, loss 4.1``, of the end of fairseq-train's log; ``before`` an update
    is told.
    """
    found = _STATUS.findall(log)
    if not found:
        return before
    epoch, loss, updates = [each for each in found[-1] if each]
    return f"epoch {epoch}, {updates} updates, loss {loss}"
