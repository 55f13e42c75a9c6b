"""DIET-ABS over mixed keys: P_Q has a row for each position, P_K one for each mixture."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import AttentionShape, factors
from diet_mt.positions.diet_abs_lin import DietAbsLin, DietAbsLinPositions
from diet_mt.positions.linformer import LinformerLayer

from ..toy import sharing_modes
from .one_layer import part_of

L, H, S, D, K, R = 2, 3, 7, 4, 5, 6
SHAPE = AttentionShape(L, H, D, 11, 11)


def part(positions: DietAbsLinPositions, layer: int, length: int = S) -> LinformerLayer:
    found = part_of(positions, layer, 0, length, length)
    assert isinstance(found, LinformerLayer)
    return found


def test_two_positions_over_three_mixtures_by_hand() -> None:
    positions = DietAbsLinPositions(AttentionShape(1, 1, D, 2, 2), "none", 3, 2)
    (table,) = positions.mixed.tables()
    with torch.no_grad():
        table.get_parameter("query").copy_(torch.tensor([[[1.0, 2], [3, 0]]]))
        table.get_parameter("key").copy_(torch.tensor([[[1.0, 0], [0, 1], [2, 1]]]))
    bias = part(positions, 0, 2).bias
    assert bias is not None
    assert bias.tolist() == [[[1, 2, 4], [3, 0, 6]]]


def test_later_queries_have_their_rows() -> None:
    positions = DietAbsLinPositions(SHAPE, "none", K, R)
    whole, later = part(positions, 1).bias, part_of(positions, 1, 2, S - 2, S).bias
    assert whole is not None
    assert later is not None
    assert torch.equal(later, whole[:, 2:])


@pytest.mark.parametrize(("rank", "width"), [(None, D), (R, R)])
def test_the_rank_is_the_head_size_unless_given(rank: int | None, width: int) -> None:
    positions = DietAbsLin(rank=rank).attention_positions(SHAPE)
    assert isinstance(positions, DietAbsLinPositions)
    for name in ("query", "key"):
        assert positions.mixed.tables()[0].get_parameter(name).size(-1) == width


def test_a_short_sentence_still_has_k_mixtures() -> None:
    """k is not a number of positions: 5 mixtures of sentences up to 3 tokens are in order."""
    positions = DietAbsLinPositions(AttentionShape(L, H, D, 3, 3), "none", K, R)
    bias = part(positions, 0, 2).bias
    assert bias is not None
    assert bias.shape == (H, 2, K)


@pytest.mark.parametrize("sharing", sharing_modes("diet-abs-lin"))
def test_many_positions_and_mixtures_keep_their_table(
    sharing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where DIET-ABS would append its factors."""
    positions = DietAbsLinPositions(SHAPE, sharing, K, R)
    tables = [part(positions, layer).bias for layer in range(L)]
    monkeypatch.setattr(factors, "APPEND_FROM", 1)
    for layer, expected in enumerate(tables):
        found = part(positions, layer).bias
        assert found is not None
        assert expected is not None
        assert torch.equal(found, expected)
