"""The paper's BLEU, from ``published.json``: which of our systems a figure belongs to is data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..evaluation.groups import BASELINE, Conditions

FILE = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class Figure:
    """One BLEU of the paper, 0 to 100."""

    name: str  # as the paper calls the system
    bleu: float
    gain: float  # above the paper's own baseline


@cache
def _read() -> Any:
    return json.loads(FILE.read_text(encoding="utf-8"))


def source() -> str:
    """Where the figures are from, and what was measured, in one sentence."""
    table = _read()
    return f"{table['source']} ({table['url']}): {table['setting']}"


def figures(conditions: Conditions) -> Mapping[str, Figure]:
    """System -> the paper's figure, for a group on the paper's test set; else nothing.

    A test set is known by a word of its name: "newstest2018", "WMT18 newstest2018".
    """
    table, direction = _read(), conditions.direction
    if table["test_set"] not in conditions.test_set.split():
        return {}
    rows = {row["system"]: row for row in table["rows"] if direction in row["bleu"]}
    if BASELINE not in rows:
        return {}
    baseline = rows[BASELINE]["bleu"][direction]
    return {
        system: Figure(row["name"], row["bleu"][direction], row["bleu"][direction] - baseline)
        for system, row in rows.items()
    }
