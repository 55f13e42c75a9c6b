"""What a sweep says while it works: a bar in a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from tqdm import tqdm


def clock(seconds: float) -> str:
    """``3 min 20 s``"""
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


class RunProgress:
    """Tells which runs are done, and every few seconds what the others work at."""

    def __init__(self, total: int, every: float) -> None:
        self.total, self.count, self.every = total, 0, every
        self._began = self._said = time.monotonic()
        self._bar = tqdm(total=total, unit="run", disable=not sys.stderr.isatty())

    def say(self, text: str) -> None:
        took = clock(time.monotonic() - self._began)
        tqdm.write(f"   [{took}] {text}", file=sys.stderr)
        sys.stderr.flush()

    def tell(self, runs: Iterable[tuple[str, str]]) -> None:
        """``runs``: names, and what they work at. Says nothing where it has just done so."""
        if time.monotonic() - self._said >= self.every:
            self._said = time.monotonic()
            for name, status in runs:
                self.say(f"{name}: {status}")

    def ended(self, name: str, failure: str) -> None:
        """One more has ended; a failure is told in the end."""
        self.count += 1
        self.say(f"{name}: {'FAILED' if failure else 'done'} ({self.count} of {self.total})")
        self._bar.update()

    def close(self) -> None:
        self._bar.close()
