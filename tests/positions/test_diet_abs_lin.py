"""DIET-ABS over mixed keys: P_Q has a row for each position, P_K one for each mixture."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import CROSS, DECODER, ENCODER, AttentionShape, factors
from diet_mt.positions.diet_abs import DietAbsBias
from diet_mt.positions.diet_abs_lin import DietAbsLin, DietAbsLinPositions
from diet_mt.positions.linformer import DEFAULT_K, LinformerLayer

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


@pytest.mark.parametrize("sharing", sharing_modes("diet-abs-lin"))
def test_sharing_concerns_the_factors_alone(sharing: str) -> None:
    """E and F are one pair per layer in every mode."""
    positions = DietAbsLinPositions(SHAPE, sharing, K, R)
    assert positions.mixed.sharing == sharing
    pairs = [tuple(rows.shape) for rows in positions.layers.parameters()]
    assert pairs == [(1, 11, K)] * (2 * L)
    x = torch.randn(2, H, S, D)
    for layer in range(L):
        shares = positions.layers[layer].get_parameter("of_keys")[0, :S]
        expected = torch.einsum("sk,bhsd->bhkd", shares, x)
        torch.testing.assert_close(part(positions, layer).keys(x, None), expected)


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


def test_decoder_and_cross_attention_have_diet_abs() -> None:
    for kind, keys in ((DECODER, 9), (CROSS, 11)):
        bias = DietAbsLin(rank=R).attention_positions(AttentionShape(L, H, D, 9, keys, kind))
        assert type(bias) is DietAbsBias
        assert bias.sharing == "layer-wise"
        assert [tuple(rows.shape) for rows in bias.parameters()] == [(H, 9, R), (H, keys, R)]


@pytest.mark.parametrize(("rank", "width"), [(None, D), (1, 1), (R, R)])
def test_defaults_of_the_scheme(rank: int | None, width: int) -> None:
    """The factors as in DIET-ABS: layers share, the rank is the head size; k is 32."""
    assert DietAbsLin() == DietAbsLin(sharing="layer-wise", rank=None, projected=DEFAULT_K)
    assert DietAbsLin().input_positions(11, H * D) is None
    shape = AttentionShape(L, H, D, 11, 11, ENCODER)
    positions = DietAbsLin(rank=rank).attention_positions(shape)
    assert isinstance(positions, DietAbsLinPositions)
    shapes = [tuple(rows.shape) for rows in positions.mixed.parameters()]
    assert shapes == [(H, 11, width), (H, DEFAULT_K, width)]
