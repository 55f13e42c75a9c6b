"""The paper's published costs (table 1), BLEU (4), GLUE (2, 8, 9) and XTREME (3, 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ..evaluation.groups import BASELINE, Conditions
from ..evaluation.records import ENCODING

BLEU, TASKS = "published.json", "published_tasks.json"
GLUE, XTREME = "glue", "xtreme"
AVERAGE = "average"
# Encoding -> shape of BERT -> time of training and of inference over learned positions, in percent,
# on a TPU v2.
COSTS = {
    "shaw": {"base": (13, 33), "small": (24, 65)},
    "tupe-rel": {"base": (1, 19), "small": (4, 27)},
    "diet-abs": {"base": (0, 0), "small": (0, 1)},
    "diet-rel": {"base": (0, 0), "small": (0, 0)},
}


@dataclass(frozen=True)
class PublishedRow:
    """One row of the paper; ``scores``: title of a column, or direction -> 0 to 100."""

    name: str  # in the paper
    system: str
    options: dict[str, str]  # of the encoding; the rank unless it is the architecture's, 128
    scores: dict[str, float]
    segments: str = ""
    tables: tuple[int, ...] = ()
    post_norm: dict[str, str] = field(default_factory=dict)  # options, layer norm coming last

    def is_of(self, system: str, positions: Mapping[str, object]) -> bool:
        """Whether its model is that of a result with these positions."""
        own = {name: str(value) for name, value in positions.items() if name != ENCODING}
        return system == self.system and {"scale": "head", **own} == {
            "scale": "head",
            **self.options,
        }


@cache
def _read(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def source(name: str) -> str:
    """Reference and setting of the scores, in one sentence."""
    return "{source} ({url}): {setting}".format(**_read(name))


def published_bleu(conditions: Conditions) -> dict[str, PublishedRow]:
    """System -> the row with BLEU of this direction; empty for another test set.

    The test set is recognized by a word of its name: "newstest2018", "WMT18 newstest2018". Shaw et
    al. clip at 20 in Tensor2Tensor's model, which has layer norm first, and at 16 as published.
    """
    table = _read(BLEU)
    every = [PublishedRow(**row) for row in table["rows"]]
    if "encoder-normalize-before" not in conditions.model.split():
        every = [replace(row, options={**row.options, **row.post_norm}) for row in every]
    rows = {row.system: row for row in every if conditions.direction in row.scores}
    return rows if table["test_set"] in conditions.test_set.split() and BASELINE in rows else {}


def bleu_of(direction: str) -> dict[str, float]:
    """System -> BLEU on newstest2018; empty for another direction."""
    rows = [PublishedRow(**row) for row in _read(BLEU)["rows"]]
    return {row.system: row.scores[direction] for row in rows if direction in row.scores}


def published_rows(table: str) -> list[PublishedRow]:
    """The rows of GLUE or XTREME, in the paper's order."""
    return [PublishedRow(**row) for row in _read(TASKS)[table]]


def published_row(
    table: str, system: str, segments: str, positions: Mapping[str, object]
) -> PublishedRow | None:
    """The paper's row of a model: with these segments if there is one, else its first."""
    rows = [row for row in published_rows(table) if row.is_of(system, positions)]
    return next((row for row in rows if row.segments == segments), rows[0] if rows else None)
