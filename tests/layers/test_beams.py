"""Grouping rows of a decoding batch by sentence."""

from __future__ import annotations

import pytest
import torch

from diet_mt.layers.beams import regroup


@pytest.mark.parametrize(
    ("order", "rows", "beams", "length", "sentences"),
    [
        # Nothing moves, or only within sentences: no work.
        ([0, 1, 2], 3, 1, 1, None),
        ([1, 0, 2, 5, 5, 3], 6, 3, 3, None),
        # The first expansion: each sentence gets as many rows as there are beams.
        ([0, 0, 0, 1, 1, 1], 2, 1, 3, [0, 1]),
        ([0, 0], 1, 1, 2, [0]),
        # Sentence 1 of 3 is finished, or sentences change places; beams are reordered as well.
        ([1, 0, 4, 4], 6, 2, 2, [0, 2]),
        ([5, 4, 0, 0, 3, 2], 6, 2, 2, [2, 0, 1]),
        # Irregular: every row becomes a sentence of its own.
        ([0, 2, 1, 3], 4, 2, 1, [0, 1, 0, 1]),
        ([0, 1, 2], 4, 2, 1, [0, 0, 1]),
        ([2, 0, 1], 3, 1, 1, [2, 0, 1]),
        ([0, 0, 1, 2, 2, 1], 3, 1, 1, [0, 0, 1, 2, 2, 1]),
        ([0, 0, 0, 1, 1, 1, 2], 3, 1, 1, [0, 0, 0, 1, 1, 1, 2]),
    ],
)
def test_by_hand(
    order: list[int], rows: int, beams: int, length: int, sentences: list[int] | None
) -> None:
    found, moved = regroup(torch.tensor(order), rows, beams)
    assert found == length
    assert (None if moved is None else moved.tolist()) == sentences


def test_any_order_keeps_each_row_with_its_sentence() -> None:
    """The new runs and their sentences say for each row what its old row said."""
    rows, beams = 12, 3
    for _ in range(200):
        order = torch.randint(0, rows, (int(torch.randint(1, 15, ())),))
        length, moved = regroup(order, rows, beams)
        sentences = torch.arange(rows // beams) if moved is None else moved
        assert sentences.repeat_interleave(length).tolist() == (order // beams).tolist()
