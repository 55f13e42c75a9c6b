"""Small jobs for workers."""

from __future__ import annotations

from typing import Any

from diet_mt.bench.speed import model_words, training_words
from diet_mt.bench.worker import RANDOM_DATA, Job, System
from diet_mt.models._architectures import SIZES

FIELDS: dict[str, Any] = {
    "vocabulary": 60,
    "decode_tokens": 60,
    "batches": 2,
    "decode_length": 4,
    "beam": 10,
    "lenpen": 0.6,
    "threads": 1,
}


def words_of(name: str, size: str = "tiny", train_tokens: int = 120) -> list[str]:
    return [RANDOM_DATA, *model_words(name, SIZES[size]), *training_words(train_tokens, 0.1)]


def small_system(name: str, size: str = "tiny", train_tokens: int = 120, **fields: Any) -> System:
    words = words_of(name, size, train_tokens)
    return System(Job(words=words, user_dir=None, **{**FIELDS, **fields}))
