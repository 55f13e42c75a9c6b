"""No positions: the null case."""

from __future__ import annotations

from diet_mt.positions import AttentionShape
from diet_mt.positions.none import NoPositions


def test_nothing_is_added_anywhere() -> None:
    assert NoPositions().input_positions(9, 12) is None
    assert NoPositions().attention_positions(AttentionShape(2, 3, 4, 9, 11)) is None
