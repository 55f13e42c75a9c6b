"""Positions beside the words: the last columns of the input."""

from __future__ import annotations

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.positions.concat import Concat, ConcatInput

N, E, R = 9, 12, 5


def test_three_positions_by_hand() -> None:
    term = ConcatInput(3, 4, 2)
    with torch.no_grad():
        term.weight.copy_(torch.tensor([[1.0, 2], [3, 4], [5, 6]]))
    by_hand = [[0.0, 0, 1, 2], [0, 0, 3, 4], [0, 0, 5, 6]]
    assert term.table().tolist() == by_hand
    assert term.rows(range(1, 3)).tolist() == [by_hand[1:]]


@pytest.mark.parametrize(
    ("rank", "width", "of_positions"), [(None, 64, 8), (None, 12, 1), (None, 7, 1), (5, 12, 5)]
)
def test_positions_take_an_eighth_of_the_width_unless_given(
    rank: int | None, width: int, of_positions: int
) -> None:
    encoding = Concat(rank=rank)
    assert encoding.token_dim(width) == width - of_positions
    term = encoding.input_positions(N, width)
    assert isinstance(term, ConcatInput)
    assert term.weight.shape == (N, of_positions)
    assert term.rows(range(N)).shape == (1, N, width)


@pytest.mark.parametrize("rank", [12, 13])
def test_the_words_need_room(rank: int) -> None:
    with pytest.raises(UserError, match=f"width {rank} .*no room.* model of width 12"):
        Concat(rank=rank).token_dim(12)
    assert Concat(rank=11).token_dim(12) == 1


def test_starts_as_large_as_the_words() -> None:
    """Words are drawn with (E-R)^-0.5 and scaled by sqrt(E) at the input: near 1."""
    # 16,384 draws, known to 0.6% (one deviation).
    assert ConcatInput(256, 128, 64).weight.std().item() == pytest.approx(1.0, rel=0.03)
