"""DeBERTa: queries meet positions, keys meet positions, by clipped distance."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import AttentionShape
from diet_mt.positions.base import INIT_STD
from diet_mt.positions.deberta import DebertaLayer, DebertaPositions

from .one_layer import part_of

B, L, H, D, CLIP = 2, 2, 3, 4, 3
SHAPE = AttentionShape(L, H, D, 9, 11)
ROUNDING = 1e-12  # float64


def part(positions: DebertaPositions, layer: int, *place: int) -> DebertaLayer:
    found = part_of(positions, layer, *place)
    assert isinstance(found, DebertaLayer)
    return found


def drawn(sharing: str, clip: int = CLIP) -> DebertaPositions:
    positions = DebertaPositions(SHAPE, sharing, clip).double()
    for parameter in positions.parameters():
        torch.nn.init.normal_(parameter)
    return positions


def test_rows_by_hand() -> None:
    """k = 2: rows 0, 1, 2 and 3 for i - j of -2 and less, -1, 0, and 1 and more."""
    positions = DebertaPositions(AttentionShape(1, 1, 1, 9, 9), "none", 2).double()
    with torch.no_grad():
        for parameter in positions.parameters():
            parameter.fill_(1)
        positions.relative.copy_(torch.tensor([[10.0], [11], [12], [13]]))
    one = torch.ones(1, 1, 4, 1, dtype=torch.float64)
    by_hand = [[12.0, 11, 10, 10], [13.0, 12, 11, 10], [13.0, 13, 12, 11], [13.0, 13, 13, 12]]
    found = part(positions, 0, 0, 4, 4)
    assert found.query_bias(one, 4, 1.0)[0, 0].tolist() == by_hand
    assert found.key_bias(one, 1.0)[0, 0].tolist() == by_hand
    late = part(positions, 0, 2, 1, 4)
    assert late.query_bias(one[:, :, :1], 4, 1.0)[0, 0].tolist() == by_hand[2:3]
    assert late.key_bias(one, 1.0)[0, 0].tolist() == by_hand[2:3]


def test_keys_in_any_order() -> None:
    """A step of the search may hold them so: their positions stand beside them."""
    positions = drawn("none")
    k = torch.randn(B, H, 6, D, dtype=torch.float64)
    step = part(positions, 1, 5, 1, 6)
    in_order = step.key_bias(k, 0.3)
    places = torch.stack([torch.randperm(6) for _ in range(B)])
    moved = torch.stack([k[b][:, places[b]] for b in range(B)])
    found = step.key_bias(moved, 0.3, places)
    expected = torch.stack([in_order[b][..., places[b]] for b in range(B)])
    assert found.shape == (B, H, 1, 6)
    torch.testing.assert_close(found, expected, rtol=0, atol=ROUNDING)


def test_initial_values() -> None:
    positions = DebertaPositions(AttentionShape(1, 4, 16, 9, 9), "none", 100)
    for name, parameter in positions.named_parameters():
        assert parameter.std().item() == pytest.approx(INIT_STD, rel=0.1), name
    assert positions.relative.shape == (200, 64)
