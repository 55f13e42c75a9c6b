"""Sandwich: sums of cosines of the distance, compressed by head."""

from __future__ import annotations

import torch

from diet_mt.positions import AttentionShape
from diet_mt.positions.sandwich import SandwichBias

L, H, D = 2, 3, 4
SHAPE = AttentionShape(L, H, D, 9, 11)

# sum over c < 64 of cos(d / 10000^(c/64)) - 1, added up by hand for d = 1 and 2.
ONE, TWO = -1.9063161942, -6.6181394472


def test_two_heads_by_hand() -> None:
    """Compression 4 and 8."""
    fall = torch.tensor([[0.0, ONE, TWO], [ONE, 0, ONE], [TWO, ONE, 0]], dtype=torch.float64)
    bias = SandwichBias(AttentionShape(5, 2, D, 3, 3))
    expected = torch.stack([fall / 4, fall / 8])
    torch.testing.assert_close(bias(range(3), range(3))[0], expected, rtol=0, atol=1e-7)
    torch.testing.assert_close(bias(range(2, 3), range(3))[0], expected[:, 2:], rtol=0, atol=1e-7)


def test_differences_are_those_of_the_products_of_sinusoids() -> None:
    """As the paper's own listing has it: a table of sines and cosines, times itself."""
    heads, length = 12, 40
    place = torch.arange(length, dtype=torch.float64)[:, None]
    angle = place / 10000 ** (torch.arange(64).double() / 64)
    table = torch.cat([angle.sin(), angle.cos()], dim=1)
    compression = 8 * torch.arange(1, heads + 1).double()[:, None, None] / heads
    products = table @ table.t() / compression
    bias = SandwichBias(AttentionShape(1, heads, D, length, length))
    found = bias(range(length), range(length))[0]
    torch.testing.assert_close(found, products - 64 / compression, rtol=0, atol=1e-11)


def test_half_precision_does_not_round_frequencies_or_distances() -> None:
    exact = SandwichBias(SHAPE)(range(3000, 3001), range(3001))
    for kind in (torch.float16, torch.bfloat16):
        assert torch.equal(SandwichBias(SHAPE).to(kind)(range(3000, 3001), range(3001)), exact)
