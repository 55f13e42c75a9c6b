"""Small jobs for workers."""

from __future__ import annotations

from typing import Any

from diet_mt.bench.speed import model_words, training_words
from diet_mt.bench.worker import RANDOM_DATA, Job, System
from diet_mt.models._architectures import SIZES

FIELDS: dict[str, Any] = {
    "vocabulary": 60,
    "batches": 2,
    "decode_length": 4,
    "beam": 10,
    "lenpen": 0.6,
    "threads": 1,
}


LOAD = {"train": {"tokens": 120}, "forward": {"tokens": 120}, "decode": {"tokens": 60}}


def words_of(name: str, size: str = "tiny") -> list[str]:
    return [RANDOM_DATA, *model_words(name, SIZES[size]), *training_words(0.1)]


def small_system(name: str, size: str = "tiny", **fields: Any) -> System:
    return System(Job(words=words_of(name, size), user_dir=None, **{**FIELDS, **fields}))
