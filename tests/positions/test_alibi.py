"""ALiBi: slopes by head, and how far a key is from its query."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import AttentionShape
from diet_mt.positions.alibi import AlibiBias, slopes

L, D = 2, 4


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        # Section 3: eight heads have 1/2, 1/4, ... 1/256, and sixteen the roots between them too.
        (8, [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]),
        (16, [2 ** (-number / 2) for number in range(1, 17)]),
        # Those of 2, then the first of 4; those of 4, then 1/2 and 1/8 of eight.
        (3, [2**-4, 2**-8, 2**-2]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 0.5, 0.125]),
        # Those of 8, then every other one of 16.
        (12, [2.0**-number for number in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_slopes_by_hand(heads: int, expected: list[float]) -> None:
    assert slopes(heads) == pytest.approx(expected, rel=1e-15)


def test_every_head_has_a_slope_of_its_own() -> None:
    for heads in range(2, 66):
        found = slopes(heads)
        assert len(set(found)) == heads
        assert 2**-8 <= min(found) < max(found) < 1


def test_two_heads_by_hand() -> None:
    """Slopes 1/16 and 1/256."""
    distance = [
        [0.0, 1, 2],
        [1.0, 0, 1],
        [2.0, 1, 0],
    ]
    away = torch.tensor(distance, dtype=torch.float64)
    by_hand = torch.stack([-away / 16, -away / 256])
    bias = AlibiBias(AttentionShape(5, 2, D, 3, 3))
    assert torch.equal(bias(range(3), range(3))[0], by_hand)
    assert torch.equal(bias(range(2, 3), range(3))[0], by_hand[:, 2:])


def test_half_precision_does_not_round_slopes_or_distances() -> None:
    """Odd distances beyond 256 do not exist in bfloat16, and no slope of six heads' roots does."""
    shape = AttentionShape(L, 12, D, 9, 11)
    exact = AlibiBias(shape)(range(3000, 3001), range(3001))
    assert exact[0, 8, 0, 1].item() == pytest.approx(-(2**-0.5) * 2999, rel=1e-15)
    for kind in (torch.float16, torch.bfloat16):
        assert torch.equal(AlibiBias(shape).to(kind)(range(3000, 3001), range(3001)), exact)
