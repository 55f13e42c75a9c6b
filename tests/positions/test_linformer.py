"""Linformer: k mixtures take the place of keys and values, and padding is in none of them."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import AttentionShape
from diet_mt.positions.linformer import LinformerLayer, LinformerPositions

from .one_layer import part_of

B, L, H, S, D, K = 2, 2, 3, 7, 4, 5
SHAPE = AttentionShape(L, H, D, 11, 11)


def test_two_mixtures_by_hand() -> None:
    """Three keys of size 1: 10, 20 and 30. The first mixture is their sum, the second takes the
    last from the first.
    """
    shares = torch.tensor([[[1.0, 1], [1, 0], [1, -1]]])
    part = LinformerLayer(of_keys=shares, of_values=2 * shares)
    x = torch.tensor([10.0, 20, 30]).view(1, 1, 3, 1)
    assert part.keys(x, None).flatten().tolist() == [60, -20]
    assert part.values(x, None).flatten().tolist() == [120, -40]


def test_padding_is_not_mixed() -> None:
    """The third token of the first sentence is padding: it may hold anything."""
    shares = torch.tensor([[[1.0, 1], [1, 0], [1, -1]]])
    padding = torch.tensor([[False, False, True], [False, False, False]])
    part = LinformerLayer(of_keys=shares, of_values=shares)
    x = torch.tensor([[10.0, 20, 999], [10, 20, 30]]).view(2, 1, 3, 1)
    for mixed in (part.keys(x, padding), part.values(x, padding)):
        assert mixed.flatten(1).tolist() == [[30, 10], [60, -20]]
    # Over the mixtures nothing is left to mask.
    assert part.mixes_keys


def test_half_precision_keeps_its_dtype() -> None:
    part = part_of(LinformerPositions(SHAPE, "none", K).to(torch.bfloat16), 0, 0, S, S)
    x = torch.ones(B, H, S, D, dtype=torch.bfloat16)
    assert part.keys(x, None).dtype == part.values(x, None).dtype == torch.bfloat16


def test_shares_start_with_a_variance_of_one_over_k() -> None:
    (table,) = LinformerPositions(AttentionShape(1, 1, D, 512, 512), "head-wise", 64).tables()
    for shares in table.parameters():
        assert shares.shape == (1, 512, 64)
        # 32,768 draws: their standard deviation is off by less than 2% (five times 0.4%).
        assert shares.std().item() == pytest.approx(0.125, rel=0.02)
