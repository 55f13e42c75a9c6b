"""DIET-ABS: rows of P_Q are queries, rows of P_K keys, and their products the term."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.positions import AttentionShape, build_position
from diet_mt.positions.base import INIT_STD
from diet_mt.positions.diet_abs import DietAbsBias

D = 4


Rows = list[list[float]]


def tables_of(bias: DietAbsBias, layer: int = 0) -> tuple[Tensor, Tensor]:
    """P_Q (H|1, n_T, R) and P_K (H|1, n_S, R) of one layer."""
    table = bias.tables()[layer]
    return table.get_parameter("query"), table.get_parameter("key")


def with_tables(bias: DietAbsBias, query: Rows, key: Rows) -> DietAbsBias:
    """Fills the tables of the first layer and head."""
    with torch.no_grad():
        for table, rows in zip(tables_of(bias), (query, key), strict=True):
            table[0].copy_(torch.tensor(rows, dtype=torch.float32))
    return bias


QUERY_ROWS: Rows = [[1, 2], [3, 0], [0, -1], [2, 1]]
KEY_ROWS: Rows = [[1, 0], [0, 1], [2, 1], [-1, 3]]
PRODUCT = [
    [1.0, 2, 4, 5],
    [3.0, 0, 6, -3],
    [0.0, -1, -1, -3],
    [2.0, 1, 5, 1],
]


def test_self_attention_by_hand() -> None:
    """All positions, then queries 2 and 3 over three keys."""
    bias = with_tables(DietAbsBias(AttentionShape(1, 1, D, 4, 4), "none", 2), QUERY_ROWS, KEY_ROWS)
    assert bias(range(4), range(4)).tolist() == [[PRODUCT]]
    assert bias(range(2, 4), range(3)).tolist() == [[[row[:3] for row in PRODUCT[2:]]]]


def test_both_factors_start_small_and_away_from_zero() -> None:
    """Each is the gradient of the other: at 0 neither would ever move."""
    bias = DietAbsBias(AttentionShape(1, 8, 64, 64, 64), "none", 64)
    for table in tables_of(bias):
        # 32,768 draws: their standard deviation is off by less than 2% (five times 0.4%).
        assert table.std().item() == pytest.approx(INIT_STD, rel=0.02)
    # 64 products of standard deviation 0.0004 each: 0.0032, five of which leave room.
    assert bias(range(64), range(64)).abs().max() < 0.02


def test_products_are_summed_in_float32_in_a_half_precision_model() -> None:
    """4096 and 32 times 1/64: half precision has steps of 4 there."""
    bias = DietAbsBias(AttentionShape(1, 1, D, 2, 2), "none", 33).half()
    with torch.no_grad():
        for table in tables_of(bias):
            table.fill_(0.125)
            table[..., 0] = 64.0
    out = bias(range(2), range(2))
    assert out.dtype == torch.float32
    assert out.unique().tolist() == [4096.5]


def test_positions_in_the_logits_raise_the_rank_to_the_sum() -> None:
    """Theorem 1 of the paper: heads of 3, factors of rank 4, words of width 8."""
    bias = build_position("diet-abs", rank=4).attention_positions(AttentionShape(1, 1, 3, 10, 10))
    assert bias is not None
    words, (w_q, w_k) = torch.randn(10, 8).double(), torch.randn(2, 8, 3).double()
    logits = words @ w_q @ (words @ w_k).T
    # From the initial 0.0004 to the size of q . k.
    position = bias.double()(range(10), range(10))[0, 0] * 1e4
    found = [int(torch.linalg.matrix_rank(each)) for each in (logits, position, logits + position)]
    assert found == [3, 4, 7]
