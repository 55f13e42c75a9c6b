"""Small jobs for workers."""

from __future__ import annotations

from typing import Any

from diet_mt.bench.process.workload import Job
from diet_mt.bench.systems import benchmark_job

COMMON: dict[str, Any] = {
    "data": None,
    "vocabulary": 60,
    "train_tokens": 120,
    "decode_tokens": 60,
    "batches": 2,
    "decode_length": 4,
    "beam": 10,
    "lenpen": 0.6,
    "half": False,
    "device": "cpu",
    "threads": 1,
}


def fields(system: str, size: str = "tiny", **changed: Any) -> dict[str, Any]:
    """What a worker is sent for ``system``."""
    return benchmark_job(system, size, {**COMMON, **changed}, 0.1, [])


def small_job(system: str, size: str = "tiny", **changed: Any) -> Job:
    return Job(**fields(system, size, **changed))
