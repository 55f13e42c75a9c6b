"""DIET-REL: the value of a distance stands where the distance is."""

from __future__ import annotations

import torch
from torch import Tensor

from diet_mt.positions import AttentionShape
from diet_mt.positions.diet_rel import DietRelBias

L, H, D = 2, 3, 4
N_T, N_S = 9, 11
SHAPE = AttentionShape(L, H, D, N_T, N_S)


def table_of(bias: DietRelBias, layer: int = 0) -> Tensor:
    """R of one layer, (H|1, n_T + n_S - 1)."""
    return bias.tables()[layer].get_parameter("by_offset")


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
    assert bias(range(4), range(4)).tolist() == [[by_hand]]
    assert bias(range(2, 4), range(3)).tolist() == [[[row[:3] for row in by_hand[2:]]]]


def test_cross_attention_by_hand() -> None:
    """Two target and three source positions: R[-2] .. R[1] = 30, 20, 10, 5."""
    bias = DietRelBias(AttentionShape(1, 1, D, 2, 3), "none")
    with torch.no_grad():
        table_of(bias).copy_(torch.tensor([[30.0, 20, 10, 5]]))
    by_hand = [
        [10.0, 20, 30],
        [5.0, 10, 20],
    ]
    assert bias(range(2), range(3)).tolist() == [[by_hand]]


def test_tables_start_at_zero() -> None:
    bias = DietRelBias(SHAPE, "none")
    assert not any(table_of(bias, layer).any() for layer in range(L))
