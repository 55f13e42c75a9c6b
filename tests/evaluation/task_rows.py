"""A result of fine-tuning to start from: tests change the fields they are about."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from diet_mt.evaluation.records import TaskResult

from .rows import as_data, command

_ROW = TaskResult(
    task="CoLA",
    split="valid",
    language="en",
    system="diet-rel",
    arch="roberta_diet_rel_tiny",
    positions={"encoding": "diet-rel", "sharing": "none"},
    model={},
    segments="per-head",
    metrics={"matthews": 30.5, "accuracy": 71.25},
    main_metric="matthews",
    pretrained_sha256="a" * 64,
    pretrain_updates=10_000,
    pretrain_perplexity=21.5,
    checkpoint_sha256="b" * 64,
    seed=1,
    lr=3e-05,
    epochs=5,
    batch=32,
    parameters=3_400_000,
    date="2026-01-02",
    revision="v0-1-gabc",
    versions={"torch": "2.13.0"},
    training=command("fairseq-train data/CoLA --seed 1"),
    evaluation=command("diet-mt predict CoLA x.pt"),
)


def task_row(**changes: Any) -> TaskResult:
    """A complete result with ``changes``."""
    return dataclasses.replace(_ROW, **as_data(changes))


def accuracies(task: str, values: Iterable[float], **changes: Any) -> list[TaskResult]:
    """One result for each value, an accuracy: of seeds 1, 2, ..."""
    return [
        task_row(
            task=task, metrics={"accuracy": value}, main_metric="accuracy", seed=seed, **changes
        )
        for seed, value in enumerate(values, start=1)
    ]
