"""Runs side by side on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from .progress import Progress
from .sweep import Run
from .work import Work, end, environment

_PAUSE = 0.1  # seconds between looks at the processes


def usual_jobs() -> int:
    """Runs at a time: one for each core; where there are GPUs one, on all of them."""
    import torch

    return 1 if torch.cuda.is_available() else len(os.sched_getaffinity(0))


def side_by_side(runs: Sequence[Run], jobs: int, every: float) -> list[str]:
    """Runs all of them, so many at a time, and returns a line for each that failed.

    All that was started has ended afterwards, also where this is interrupted.

    Args:
        every: Seconds from one word on each run to the next.
    """
    waiting, failures = list(runs), []
    under_way: list[Work] = []
    progress, surroundings = Progress(len(runs), every), environment(one_thread=jobs > 1)
    try:
        while waiting or under_way:
            while waiting and len(under_way) < jobs:
                under_way.append(Work(waiting.pop(0), surroundings))
            for work in [work for work in under_way if work.poll()]:
                under_way.remove(work)
                progress.ended(work.run.name, work.failure)
                failures += [work.failure] if work.failure else []
            progress.tell((work.run.name, work.status()) for work in under_way)
            time.sleep(_PAUSE)
    finally:
        end([work.process for work in under_way if work.process])
        progress.close()
    return failures
