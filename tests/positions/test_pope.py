"""PoPE: words give the lengths, positions the angles."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from diet_mt.positions import AttentionShape, build_position
from diet_mt.positions.pope import PopeLayer, PopePositions

H, D, T = 2, 4, 6


def part_at(start: int, *, phase: float = 0.0, length: int = T) -> PopeLayer:
    positions = PopePositions(AttentionShape(1, H, D, 9, 9), "none").double()
    with torch.no_grad():
        next(positions.parameters()).fill_(phase)
    (part,) = positions.for_layers(range(start, start + length), range(start + length))
    assert isinstance(part, PopeLayer)
    return part


def products(part: PopeLayer, q: Tensor, k: Tensor) -> Tensor:
    return part.queries(q) @ part.keys(k, None).transpose(-1, -2)  # (B, H, T, S)


def test_by_hand() -> None:
    """softplus(0) is ln 2, and column 1 of 4 turns ten times more slowly than column 0."""
    part = part_at(0, phase=-0.5, length=3)
    zero = torch.zeros(1, H, 3, D, dtype=torch.float64)
    found = products(part, zero, zero)[0, 1, 2, 0].item()
    turns = (math.cos(-2 * speed - 0.5) for speed in (1, 0.1, 0.01, 0.001))
    assert math.isclose(found, math.log(2) ** 2 * sum(turns), rel_tol=1e-14)


def test_phases_are_kept_within_a_turn_and_start_at_zero() -> None:
    words = torch.randn(1, H, T, D, dtype=torch.float64)
    for given, meant in ((0.7, 0.0), (-9.0, -2 * math.pi)):
        found = products(part_at(2, phase=given), words, words)
        torch.testing.assert_close(found, products(part_at(2, phase=meant), words, words))
    positions = build_position("pope").attention_positions(AttentionShape(3, H, D, 9, 9))
    assert positions is not None
    assert all(phase.eq(0).all() for phase in positions.parameters())


def test_words_have_no_angle() -> None:
    """Whatever the words, the sign of a column's product is that of its cosine."""
    part = part_at(0)
    for column in range(D):
        q, k = torch.randn(2, 5, H, T, D, dtype=torch.float64)
        q[..., [c for c in range(D) if c != column]] = -torch.inf  # a length of 0
        away = torch.arange(T) - torch.arange(T)[:, None]
        expected = torch.cos(away * 10000.0 ** (-column / D)).sign()
        assert torch.equal(products(part, q, k).sign(), expected.expand(5, H, T, T))
