"""The paper's figures, from JSON: which of our systems a figure belongs to is data.

BLEU of table 4, and scores of encoders: GLUE (tables 2, 8 and 9) and XTREME (3 and 5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..evaluation.groups import BASELINE, Conditions
from ..evaluation.records import options_in

BLEU = Path(__file__).with_name("published.json")
TASKS = Path(__file__).with_name("published_tasks.json")
GLUE, XTREME = "glue", "xtreme"
AVERAGE = "average"


def _is_model(own: Mapping[str, str], options: Mapping[str, object]) -> bool:
    """Whether a result with ``options`` has the model of a figure: those of the figure, ``own``,
    and no other.
    """
    of_encoding = {name: value for name, value in options.items() if name != "arch"}
    return {"scale": "head", **of_encoding} == {"scale": "head", **own}


@dataclass(frozen=True)
class Figure:
    """One BLEU of the paper, 0 to 100."""

    bleu: float
    gain: float  # above the paper's own baseline
    options: Mapping[str, str]  # all of its encoding

    def is_of(self, positions: str) -> bool:
        """Whether its model is that of a result with these positions."""
        return _is_model(self.options, options_in(positions))


@cache
def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def source(file: Path = BLEU) -> str:
    """Where the figures are from, and what was measured, in one sentence."""
    table = _read(file)
    return f"{table['source']} ({table['url']}): {table['setting']}"


def figures(conditions: Conditions) -> Mapping[str, Figure]:
    """System -> the paper's figure, for a group on the paper's test set; else nothing.

    A test set is known by a word of its name: "newstest2018", "WMT18 newstest2018".
    """
    table, direction = _read(BLEU), conditions.direction
    if table["test_set"] not in conditions.test_set.split():
        return {}
    rows = {row["system"]: row for row in table["rows"] if direction in row["bleu"]}
    if BASELINE not in rows:
        return {}
    baseline = rows[BASELINE]["bleu"][direction]
    return {
        system: Figure(
            row["bleu"][direction],
            row["bleu"][direction] - baseline,
            row.get("options", {}),
        )
        for system, row in rows.items()
    }


@dataclass(frozen=True)
class PublishedRow:
    """One row of the paper: ``scores`` by the title of the column, 0 to 100."""

    name: str  # as the paper calls the system
    system: str
    segments: str
    tables: list[int]  # that it stands in
    options: dict[str, str]  # all of its encoding; the rank where it is not the architecture's, 128
    scores: dict[str, float]

    def is_of(self, system: str, options: Mapping[str, object]) -> bool:
        """Whether its model is that of a result with these options."""
        return system == self.system and _is_model(self.options, options)


def published_rows(table: str) -> list[PublishedRow]:
    """The rows of GLUE or XTREME, in the paper's order."""
    return [PublishedRow(**row) for row in _read(TASKS)[table]]


def published_row(
    table: str, system: str, segments: str, options: Mapping[str, object]
) -> PublishedRow | None:
    """The paper's row of a system with these options, with segments of this kind if there is one,
    else the first that it has with others; None where it has none.
    """
    rows = [row for row in published_rows(table) if row.is_of(system, options)]
    return next((row for row in rows if row.segments == segments), rows[0] if rows else None)
