"""DeBERTa: queries meet positions, keys meet positions, by clipped distance."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.positions import CROSS, DECODER, ENCODER, AttentionShape
from diet_mt.positions.base import INIT_STD
from diet_mt.positions.deberta import Deberta, DebertaLayer, DebertaPositions

from ..toy import sharing_modes
from .one_layer import part_of

B, L, H, D, CLIP = 2, 2, 3, 4, 3
SHAPE = AttentionShape(L, H, D, 9, 11)
ROUNDING = 1e-12  # float64

any_place = pytest.mark.parametrize(
    ("start", "queries", "keys"), [(0, 5, 7), (0, 7, 5), (4, 5, 9), (0, 1, 1), (8, 1, 9)]
)


def part(positions: DebertaPositions, layer: int, *place: int) -> DebertaLayer:
    found = part_of(positions, layer, *place)
    assert isinstance(found, DebertaLayer)
    return found


def drawn(sharing: str, clip: int = CLIP) -> DebertaPositions:
    positions = DebertaPositions(SHAPE, sharing, clip).double()
    for parameter in positions.parameters():
        torch.nn.init.normal_(parameter)
    return positions


def row_of(distance: int, clip: int) -> int:
    """d(i, j) of the paper, for ``distance`` i - j."""
    if distance <= -clip:
        return 0
    return 2 * clip - 1 if distance >= clip else distance + clip


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


@any_place
@pytest.mark.parametrize("clip", [1, CLIP, 20])
@pytest.mark.parametrize("sharing", sharing_modes("deberta"))
def test_every_entry_by_layer_head_and_position(
    sharing: str, clip: int, start: int, queries: int, keys: int
) -> None:
    positions, scale = drawn(sharing, clip), 0.3
    q = torch.randn(B, H, queries, D, dtype=torch.float64)
    k = torch.randn(B, H, keys, D, dtype=torch.float64)
    for layer in range(L):
        found = part(positions, layer, start, queries, keys)
        of_queries, of_keys = found.query_bias(q, keys, scale), found.key_bias(k, scale)
        assert of_queries.shape == of_keys.shape == (B, H, queries, keys)
        table = positions.tables()[0 if sharing == "layer-wise" else layer]
        for h in range(H):
            own = 0 if sharing == "head-wise" else h
            for i in range(queries):
                for j in range(keys):
                    row = positions.relative[row_of(start + i - j, clip)]  # (E,)
                    for found_one, x, name in (
                        (of_queries, q[:, h, i], "key"),
                        (of_keys, k[:, h, j], "query"),
                    ):
                        vector = row @ table.get_parameter(name)[own]  # (D,)
                        expected = scale * (x @ vector)
                        torch.testing.assert_close(
                            found_one[:, h, i, j], expected, rtol=0, atol=ROUNDING
                        )


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


def test_a_step_is_a_row_of_the_block() -> None:
    positions = drawn("none")
    q = torch.randn(B, H, 8, D, dtype=torch.float64)
    k = torch.randn(B, H, 8, D, dtype=torch.float64)
    block = part(positions, 0, 0, 8, 8)
    step = block.step(5, 6)
    beams = q[:, :, 5:6].expand(B, H, 4, D)
    whole: Tensor = block.query_bias(q, 8, 1.0)[:, :, 5:6, :6]
    torch.testing.assert_close(
        step.query_bias(beams, 6, 1.0), whole.expand(B, H, 4, 6), rtol=0, atol=ROUNDING
    )
    torch.testing.assert_close(
        step.key_bias(k[:, :, :6], 1.0),
        block.key_bias(k, 1.0)[:, :, 5:6, :6],
        rtol=0,
        atol=ROUNDING,
    )


def test_initial_values() -> None:
    positions = DebertaPositions(AttentionShape(1, 4, 16, 9, 9), "none", 100)
    for name, parameter in positions.named_parameters():
        assert parameter.std().item() == pytest.approx(INIT_STD, rel=0.1), name
    assert positions.relative.shape == (200, 64)


def test_where_the_scheme_is() -> None:
    """In self-attention alone; q . k is divided by sqrt(3 D)."""
    assert Deberta.content_scale == pytest.approx(3**-0.5)
    assert Deberta().input_positions(11, H * D) is None
    assert Deberta().attention_positions(AttentionShape(L, H, D, 9, 11, CROSS)) is None
    for kind in (ENCODER, DECODER):
        found = Deberta(clip=5).attention_positions(AttentionShape(L, H, D, 9, 11, kind))
        assert isinstance(found, DebertaPositions)
        assert found.clip == 5
