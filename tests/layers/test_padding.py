"""Right-padded form and masks."""

from __future__ import annotations

import math

import pytest
import torch

from diet_mt.layers.padding import gather_columns, mask_of, right_pad
from diet_mt.nn.attention import causal_bias

from ..toy import PAD, collate, real, sources

INF = math.inf


def test_left_padding_moves_behind_and_back_by_hand() -> None:
    tokens = torch.tensor([[PAD, PAD, 5, 6], [7, 8, 9, 4], [PAD, PAD, PAD, PAD], [PAD, 3, 2, 1]])
    batch = right_pad(tokens, PAD)
    assert batch.tokens.tolist() == [[5, 6, 1, 1], [7, 8, 9, 4], [1, 1, 1, 1], [3, 2, 1, 1]]
    assert batch.padding is not None
    assert batch.padding.tolist() == (batch.tokens == PAD).tolist()
    assert batch.columns is not None
    assert batch.columns[0].tolist() == [2, 3, 0, 1]
    assert torch.equal(batch.restore(batch.tokens.unsqueeze(-1)).squeeze(-1), tokens)
    assert torch.equal(batch.take(tokens.unsqueeze(-1)).squeeze(-1), batch.tokens)


def test_without_left_padding_nothing_moves() -> None:
    full = collate([[5, 6, 7], [8, 9, 4]])
    assert right_pad(full, PAD) == (full, None, None)
    right = collate([[5, 6, 7], [8]])
    batch = right_pad(right, PAD)
    assert batch.tokens is right
    assert batch.columns is None
    values = torch.randn(2, 3, 4)
    assert batch.take(values) is values
    assert batch.restore(values) is values


@pytest.mark.parametrize("side", ["left", "right"])
def test_uneven_batches_come_back_as_they_were(side: str) -> None:
    rows = sources()
    tokens = collate(rows, side, width=9)
    batch = right_pad(tokens, PAD)
    assert torch.equal(batch.tokens, collate(rows, "right", width=9))
    values = torch.randn(5, 9, 4)
    assert torch.equal(batch.restore(batch.take(values)), values)
    moved = batch.take(values)
    for one, other in zip(real(values, rows, side), real(moved, rows), strict=True):
        assert torch.equal(one, other)


def test_columns_are_gathered_row_by_row() -> None:
    values = torch.arange(2 * 3 * 2).view(2, 3, 2)
    moved = gather_columns(values, torch.tensor([[2, 0, 1], [0, 0, 2]]))
    assert moved.tolist() == [[[4, 5], [0, 1], [2, 3]], [[6, 7], [6, 7], [10, 11]]]


def test_padding_is_closed_and_a_row_of_padding_alone_stays_open() -> None:
    padding = torch.tensor([[False, False, True], [True, True, True], [False, False, False]])
    mask = mask_of(padding)
    assert mask is not None
    assert mask.tolist() == [[False, False, True], [False] * 3, [False] * 3]
    assert mask_of(None) is None


def test_the_future_is_closed() -> None:
    mask = causal_bias(3, torch.device("cpu"), torch.float64)
    assert mask.tolist() == [[0.0, -INF, -INF], [0.0, 0.0, -INF], [0.0, 0.0, 0.0]]
    assert mask.dtype == torch.float64
