"""Rotary: pairs of columns turn with the position."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from diet_mt.errors import UserError
from diet_mt.positions import AttentionShape
from diet_mt.positions.frequencies import Scaling
from diet_mt.positions.rotary import Rotary, RotaryLayer, RotaryPositions, rotate

from .one_layer import part_of

B, L, H, T, D = 2, 2, 3, 5, 6
SHAPE = AttentionShape(L, H, D, 9, 11)
ROUNDING = 1e-12  # float64


def part(start: int, queries: int, shape: AttentionShape = SHAPE) -> RotaryLayer:
    found = part_of(RotaryPositions(shape, Scaling()).double(), 1, start, queries, start + queries)
    assert isinstance(found, RotaryLayer)
    return found


def test_a_quarter_turn_by_hand() -> None:
    """(x, y) becomes (-y, x); the two pairs of a row turn each by itself."""
    x = torch.tensor([[[[1.0, 2, 3, 4]]]])
    assert rotate(x, torch.tensor([[1j, 1]])).tolist() == [[[[-2, 1, 3, 4]]]]


def test_two_pairs_by_hand() -> None:
    """Head size 4: angles are the position and a hundredth of it."""
    x = torch.zeros(1, 1, 3, 4, dtype=torch.float64)
    x[..., 0] = x[..., 3] = 1.0
    found = part(0, 3, AttentionShape(2, 1, 4, 3, 3)).queries(x)
    by_hand = [[math.cos(i), math.sin(i), -math.sin(i / 100), math.cos(i / 100)] for i in range(3)]
    expected = torch.tensor(by_hand, dtype=torch.float64)
    torch.testing.assert_close(found[0, 0], expected, rtol=0, atol=ROUNDING)


def test_keys_turn_like_queries_and_values_stay() -> None:
    x = torch.randn(B, H, T, D)
    assert torch.equal(part(3, T).keys(x, None), part(3, T).queries(x))
    assert part(3, T).values(x, None) is x


def scores(start: int, q: Tensor, k: Tensor) -> Tensor:
    turn = part(start, q.size(2))
    return turn.queries(q) @ turn.keys(k, None).transpose(-1, -2)


def test_products_depend_on_the_distance_alone() -> None:
    q, k = torch.randn(2, B, H, T, D, dtype=torch.float64)
    first = scores(0, q, k)
    torch.testing.assert_close(scores(1000, q, k), first, rtol=0, atol=1e-10)
    # Equal words at every position: each diagonal holds one number, and no two diagonals the same.
    same = scores(0, q[:, :, :1].expand_as(q), k[:, :, :1].expand_as(k))[0, 0]
    diagonals = [same.diagonal(number) for number in range(1 - T, T)]
    for diagonal in diagonals:
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-12)
    assert len({round(diagonal[0].item(), 9) for diagonal in diagonals}) == 2 * T - 1


def test_turning_keeps_lengths() -> None:
    x = torch.randn(B, H, T, D, dtype=torch.float64)
    torch.testing.assert_close(part(7, T).queries(x).norm(dim=-1), x.norm(dim=-1))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_neither_angles_nor_sums(kind: torch.dtype) -> None:
    """In bfloat16 position 5001 would be 4992, another direction altogether."""
    found = part_of(RotaryPositions(SHAPE, Scaling()).to(kind), 0, 5001, 1, 5002)
    assert isinstance(found, RotaryLayer)
    assert found.turn is not None
    exact = torch.tensor(complex(math.cos(5001), math.sin(5001)), dtype=torch.complex64)
    assert found.turn[0, 0] == exact
    x = torch.randn(B, H, 1, D).to(kind)
    turned = found.queries(x)
    assert turned.dtype == kind
    assert torch.equal(turned, found.queries(x.float()).to(kind))


def test_an_odd_head_size_is_refused() -> None:
    with pytest.raises(UserError, match=r"head size of 5 is odd.*--\*-attention-heads"):
        Rotary().attention_positions(AttentionShape(L, H, 5, 9, 11))
