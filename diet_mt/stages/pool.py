"""Work on the lines of a file by all cores, in order and in bounded memory.

``multiprocessing.Pool.imap`` reads its input as fast as it can and keeps what was finished out of
turn, however much that is; here only a few chunks for each worker are under way at any time. And
where a worker is killed, which is what an operating system does when memory runs out, a ``Pool``
waits for ever; here it is an error.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from ..errors import UserError
from .orphans import end_with_parent

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 2000  # lines handed to a worker at a time
_AHEAD = 3  # chunks under way for each worker


def in_order(
    function: Callable[[list[T]], R], items: Iterable[T], workers: int, chunk: int = CHUNK
) -> Iterator[R]:
    """Yields ``function(some items)`` for successive chunks of the items, in their order. Raises
    UserError where a worker was killed; also what ``function`` or the items raise.

    Args:
        function: Must be known to other processes by its name, unless ``workers`` is 1.
    """
    chunks = _chunks(items, chunk)
    if workers == 1:
        yield from map(function, chunks)
        return
    executor = ProcessPoolExecutor(workers, initializer=begin_worker)
    pending: deque[Future[R]] = deque()
    try:
        for piece in chunks:
            pending.append(executor.submit(function, piece))
            if len(pending) >= workers * _AHEAD:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise UserError(
            "a worker process was killed (out of memory?); run again with fewer --workers"
        ) from None
    finally:
        executor.shutdown(cancel_futures=True)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while piece := list(islice(iterator, size)):
        yield piece


def begin_worker() -> None:
    """A worker leaves Ctrl-C to its parent, and ends on SIGTERM, or when its parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()  # at once, also within a library; the rest of this, where it cannot be had
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
