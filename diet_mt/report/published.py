"""Published results of the paper: cost (table 1), BLEU (4), GLUE (2, 8, 9), XTREME (3, 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..evaluation.groups import Conditions
from ..evaluation.records import ENCODING

GLUE, XTREME = "glue", "xtreme"
AVERAGE = "average"
_PAPER = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
# Encoding -> size of BERT -> additional time of training and of inference relative to learned
# positions, in percent, on a TPU v2.
COSTS: Mapping[str, Any] = _PAPER["costs"]


@dataclass(frozen=True)
class PublishedRow:
    """One row of the paper; ``scores``: title of a column, or direction -> score, 0 to 100."""

    name: str  # in the paper
    system: str
    options: dict[str, str]  # of the encoding; rank only if it is not 128, as in the architecture
    scores: dict[str, float]
    segments: str = ""
    tables: tuple[int, ...] = ()
    post_norm: dict[str, str] = field(default_factory=dict)  # options of models with post-norm

    def is_of(self, system: str, positions: Mapping[str, object]) -> bool:
        """Whether the row is about the model of a result with these options of positions."""
        own = {name: str(value) for name, value in positions.items() if name != ENCODING}
        scale = {"scale": "head"}
        return system == self.system and scale | own == scale | self.options


TABLES = {name: [PublishedRow(**row) for row in _PAPER[name]] for name in (GLUE, XTREME)}
_BLEU = [PublishedRow(**row) for row in _PAPER["bleu"]["rows"]]


def source(kind: str) -> str:
    """Reference and setting of scores, in one sentence; ``kind``: bleu or tasks."""
    return "{source} ({url}): {setting}".format(**_PAPER[kind])


def published_bleu(conditions: Conditions) -> dict[str, PublishedRow]:
    """System -> row with BLEU of this direction; empty for another test set.

    The name of the test set contains "newstest2018" as a word. Shaw et al. clip at 20 in
    Tensor2Tensor's model, which is pre-norm, and at 16 in their paper.
    """
    if _PAPER["bleu"]["test_set"] not in conditions.test_set.split():
        return {}
    pre_norm = "encoder-normalize-before" in conditions.model.split()
    return {
        row.system: row if pre_norm else replace(row, options={**row.options, **row.post_norm})
        for row in _BLEU
        if conditions.direction in row.scores
    }


def bleu_of(direction: str) -> dict[str, float]:
    """System -> BLEU on newstest2018; empty for other directions."""
    return {row.system: row.scores[direction] for row in _BLEU if direction in row.scores}


def published_row(
    table: str, system: str, segments: str, positions: Mapping[str, object]
) -> PublishedRow | None:
    """The paper's row of a model, preferably with the same segments."""
    rows = [row for row in TABLES[table] if row.is_of(system, positions)]
    return next((row for row in rows if row.segments == segments), rows[0] if rows else None)
