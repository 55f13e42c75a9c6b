"""DIET-REL: the value of a distance stands where the distance is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.errors import UserError
from diet_mt.positions import AttentionShape
from diet_mt.positions.diet_rel import DietRel, DietRelBias

from ..toy import sharing_modes

L, H, T, S, D = 2, 3, 5, 7, 4
N_T, N_S = 9, 11
SHAPE = AttentionShape(L, H, D, N_T, N_S)


def table_of(bias: DietRelBias, layer: int = 0) -> Tensor:
    """R of one layer, (H|1, n_T + n_S - 1)."""
    return bias.tables()[layer].get_parameter("by_offset")


def numbered(bias: DietRelBias) -> DietRelBias:
    """Gives every entry a value that tells layer, head and distance: 10000 l + 1000 h + (i - j)."""
    n_s = bias.shape.max_keys
    with torch.no_grad():
        for layer in range(len(bias.tables())):
            by_offset = table_of(bias, layer)
            heads, distances = by_offset.shape
            distance = torch.arange(distances) - (n_s - 1)
            by_offset.copy_(10000 * layer + 1000 * torch.arange(heads)[:, None] + distance)
    return bias


def test_self_attention_by_hand() -> None:
    """R[-3] .. R[3] = 70, 60, 50, 40, 3, 2, 1: rows are queries i, columns keys j, R[i - j]."""
    bias = DietRelBias(AttentionShape(1, 1, D, 4, 4), "none")
    with torch.no_grad():
        table_of(bias).copy_(torch.tensor([[70.0, 60, 50, 40, 3, 2, 1]]))
    by_hand = [
        [40.0, 50, 60, 70],
        [3.0, 40, 50, 60],
        [2.0, 3, 40, 50],
        [1.0, 2, 3, 40],
    ]
    assert bias(0, 4, 4).tolist() == [[by_hand]]


def test_cross_attention_by_hand() -> None:
    """Two target and three source positions: R[-2] .. R[1] = 30, 20, 10, 5."""
    bias = DietRelBias(AttentionShape(1, 1, D, 2, 3), "none")
    with torch.no_grad():
        table_of(bias).copy_(torch.tensor([[30.0, 20, 10, 5]]))
    by_hand = [
        [10.0, 20, 30],
        [5.0, 10, 20],
    ]
    assert bias(0, 2, 3).tolist() == [[by_hand]]


def test_rows_of_later_queries_by_hand() -> None:
    """Queries 2 and 3 over three keys: i - j is 2 1 0 and 3 2 1."""
    bias = DietRelBias(AttentionShape(1, 1, D, 4, 4), "none")
    with torch.no_grad():
        table_of(bias).copy_(torch.tensor([[70.0, 60, 50, 40, 3, 2, 1]]))
    by_hand = [
        [2.0, 3, 40],
        [1.0, 2, 3],
    ]
    assert bias(2, 2, 3).tolist() == [[by_hand]]
    assert bias(3, 1, 3).tolist() == [[by_hand[1:]]]


@pytest.mark.parametrize("sharing", sharing_modes("diet-rel"))
@pytest.mark.parametrize(
    ("start", "queries", "keys"),
    [(0, T, S), (0, S, T), (4, T, S), (0, 1, 1), (0, 1, S), (0, T, 1), (8, 1, 11), (0, 9, 11)],
)
def test_every_entry_by_layer_head_and_distance(
    sharing: str, start: int, queries: int, keys: int
) -> None:
    bias = numbered(DietRelBias(SHAPE, sharing))
    out = bias(start, queries, keys)
    layers = 1 if sharing == "layer-wise" else L
    heads = 1 if sharing == "head-wise" else H
    assert out.shape == (layers, heads, queries, keys)
    for layer in range(layers):
        for h in range(heads):
            for i in range(queries):
                for j in range(keys):
                    expected = 10000 * layer + 1000 * h + (start + i) - j
                    assert out[layer, h, i, j].item() == expected


def test_tables_start_at_zero() -> None:
    bias = DietRelBias(SHAPE, "none")
    assert not any(table_of(bias, layer).any() for layer in range(L))


@pytest.mark.parametrize(("start", "queries", "keys"), [(0, 10, 11), (9, 1, 5), (0, 5, 12)])
def test_positions_beyond_the_tables_are_refused(start: int, queries: int, keys: int) -> None:
    bias = DietRelBias(SHAPE, "none")
    with pytest.raises(UserError, match=r"--max-source-positions.*--max-target-positions"):
        bias(start, queries, keys)


def test_defaults_of_the_scheme() -> None:
    """The paper's best: nothing shared (table 9)."""
    bias = DietRel().attention_positions(SHAPE)
    assert bias.sharing == "none"
    assert len(bias.layers) == L
    assert DietRel().input_positions(N_S, H * D) is None
