"""The paper's published figures: BLEU (table 4), GLUE (2, 8, 9) and XTREME (3, 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..evaluation.groups import BASELINE, Conditions
from ..evaluation.records import ENCODING

BLEU, TASKS = "published.json", "published_tasks.json"
GLUE, XTREME = "glue", "xtreme"
AVERAGE = "average"


@dataclass(frozen=True)
class Figure:
    """One BLEU of the paper, 0 to 100."""

    bleu: float
    gain: float  # over the paper's own baseline
    options: Mapping[str, str]  # of the encoding

    def is_of(self, positions: Mapping[str, object]) -> bool:
        """Whether its model is that of a result with these positions."""
        return _same_model(self.options, positions)


@dataclass(frozen=True)
class PublishedRow:
    """One row of the paper; ``scores``: title of a column -> 0 to 100."""

    name: str  # in the paper
    system: str
    segments: str
    tables: list[int]
    options: dict[str, str]  # of the encoding; the rank unless it is the architecture's, 128
    scores: dict[str, float]

    def is_of(self, system: str, positions: Mapping[str, object]) -> bool:
        """Whether its model is that of a result with these positions."""
        return system == self.system and _same_model(self.options, positions)


def _same_model(own: Mapping[str, str], positions: Mapping[str, object]) -> bool:
    of_encoding = {name: str(value) for name, value in positions.items() if name != ENCODING}
    return {"scale": "head", **of_encoding} == {"scale": "head", **own}


@cache
def _read(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def source(name: str) -> str:
    """Reference and setting of the figures, in one sentence."""
    return "{source} ({url}): {setting}".format(**_read(name))


def figures(conditions: Conditions) -> dict[str, Figure]:
    """System -> BLEU in the paper; empty for another test set.

    The test set is recognized by a word of its name: "newstest2018", "WMT18 newstest2018".
    """
    table, direction = _read(BLEU), conditions.direction
    rows = {row["system"]: row for row in table["rows"] if direction in row["bleu"]}
    if table["test_set"] not in conditions.test_set.split() or BASELINE not in rows:
        return {}
    of = {system: row["bleu"][direction] for system, row in rows.items()}
    return {
        system: Figure(of[system], of[system] - of[BASELINE], row.get("options", {}))
        for system, row in rows.items()
    }


def published_rows(table: str) -> list[PublishedRow]:
    """The rows of GLUE or XTREME, in the paper's order."""
    return [PublishedRow(**row) for row in _read(TASKS)[table]]


def published_row(
    table: str, system: str, segments: str, positions: Mapping[str, object]
) -> PublishedRow | None:
    """The paper's row of a model: with these segments if there is one, else its first."""
    rows = [row for row in published_rows(table) if row.is_of(system, positions)]
    return next((row for row in rows if row.segments == segments), rows[0] if rows else None)
