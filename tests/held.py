"""A folder that somebody else is at work on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from diet_mt.system.engine import alone


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """While it lasts, another thread holds the lock of ``folder``."""
    lock = alone(folder)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lock.__enter__).result()
        try:
            yield
        finally:
            thread.submit(lock.__exit__, None, None, None).result()
