"""The paper's published costs (table 1), BLEU (4), GLUE (2, 8, 9) and XTREME (3, 5)."""

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
# Encoding -> shape of BERT -> time of training and of inference over learned positions, in percent,
# on a TPU v2.
COSTS: Mapping[str, Any] = _PAPER["costs"]


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
        scale = {"scale": "head"}
        return system == self.system and scale | own == scale | self.options


TABLES = {name: [PublishedRow(**row) for row in _PAPER[name]] for name in (GLUE, XTREME)}
_BLEU = [PublishedRow(**row) for row in _PAPER["bleu"]["rows"]]


def source(kind: str) -> str:
    """Reference and setting of the scores, ``bleu`` or ``tasks``, in one sentence."""
    return "{source} ({url}): {setting}".format(**_PAPER[kind])


def published_bleu(conditions: Conditions) -> dict[str, PublishedRow]:
    """System -> the row with BLEU of this direction; empty for another test set.

    The test set is recognized by a word of its name: "newstest2018", "WMT18 newstest2018". Shaw et
    al. clip at 20 in Tensor2Tensor's model, which has layer norm first, and at 16 as published.
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
    """System -> BLEU on newstest2018; empty for another direction."""
    return {row.system: row.scores[direction] for row in _BLEU if direction in row.scores}


def published_row(
    table: str, system: str, segments: str, positions: Mapping[str, object]
) -> PublishedRow | None:
    """The paper's row of a model: with these segments if there is one, else its first."""
    rows = [row for row in TABLES[table] if row.is_of(system, positions)]
    return next((row for row in rows if row.segments == segments), rows[0] if rows else None)
