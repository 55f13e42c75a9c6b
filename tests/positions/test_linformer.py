"""Linformer: k mixtures take the place of keys and values, and padding is in none of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.errors import UserError
from diet_mt.positions import CROSS, DECODER, ENCODER, AttentionShape
from diet_mt.positions.learned import LearnedInput
from diet_mt.positions.linformer import DEFAULT_K, Linformer, LinformerLayer, LinformerPositions

from ..toy import sharing_modes
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


def shares_of(positions: LinformerPositions, layer: int, name: str) -> Tensor:
    """E^T or F^T of one layer: (H|1, n, k)."""
    return positions.tables()[0 if positions.shared is not None else layer].get_parameter(name)


@pytest.mark.parametrize("sharing", sharing_modes("linformer"))
@pytest.mark.parametrize("keys", [1, S, 11])
def test_every_mixture_equals_loops(sharing: str, keys: int) -> None:
    positions = LinformerPositions(SHAPE, sharing, K).double()
    x = torch.randn(B, H, keys, D, dtype=torch.float64)
    for layer in range(L):
        part = part_of(positions, layer, 0, keys, keys)
        for name, mixed in (("of_keys", part.keys(x, None)), ("of_values", part.values(x, None))):
            assert mixed.shape == (B, H, K, D)
            shares = shares_of(positions, layer, name)
            for h in range(H):
                row = shares[0 if sharing == "head-wise" else h]
                for r in range(K):
                    expected = sum(row[s, r] * x[:, h, s] for s in range(keys))
                    torch.testing.assert_close(mixed[:, h, r], expected, rtol=0, atol=1e-12)


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


def test_positions_beyond_the_shares_are_refused() -> None:
    positions = LinformerPositions(SHAPE, "none", K)
    with pytest.raises(UserError, match=r"12 tokens.*11 positions.*--max-source-positions"):
        positions.for_layers(0, 12, 12)


def test_defaults_of_the_scheme() -> None:
    """One pair per layer for all its heads; learned vectors at the input of both stacks."""
    assert Linformer() == Linformer(sharing="head-wise", projected=DEFAULT_K)
    assert DEFAULT_K == 32
    assert isinstance(Linformer().input_positions(11, H * D), LearnedInput)


def test_the_encoder_alone_is_mixed() -> None:
    for kind in (DECODER, CROSS):
        assert Linformer().attention_positions(AttentionShape(L, H, D, 9, 11, kind)) is None
    positions = Linformer(projected=K).attention_positions(AttentionShape(L, H, D, 11, 11, ENCODER))
    assert isinstance(positions, LinformerPositions)
    assert isinstance(part_of(positions, 0, 0, S, S), LinformerLayer)
    assert [tuple(rows.shape) for rows in positions.parameters()] == [(1, 11, K)] * (2 * L)
