"""Memory of this process, and what one sentence pair takes at the peak. Linux only (/proc)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .workload import Forward, TrainingStep, Workload

_WARM = 8  # tokens


def memory(field: str) -> int:
    """Of this process in bytes: ``VmRSS`` now, ``VmHWM`` at its peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.split("\n") if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def peak(work: Workload, kind: str) -> dict[str, Any]:
    """Runs ``train`` or ``forward`` over one pair: its peak beyond what was there, and its time."""
    case = (
        TrainingStep(work.cfg, work.task, work.model(), [])
        if kind == "train"
        else Forward(work.task, work.model(), [])
    )
    pair = work.pair(work.job.length)
    # What stays for good: first calls of each operation, the optimizer's moments.
    case.run(work.pair(_WARM))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
    before, start = memory("VmRSS"), time.perf_counter()
    case.run(pair)
    seconds = time.perf_counter() - start
    return {"peak_bytes": memory("VmHWM") - before, "seconds": round(seconds, 3)}
