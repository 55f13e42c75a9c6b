"""T5: the bucket of a distance, and the value of a bucket where the distance is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.positions import DECODER, AttentionShape
from diet_mt.positions.base import INIT_STD
from diet_mt.positions.t5 import T5, T5Bias, buckets_of

D = 4

# The last distance of each bucket of 16, both directions, 32 buckets up to 128: one each below 8,
# then edges at 8 * 16^(k/8), which are 11.3, 16, 22.6, 32, 45.3, 64 and 90.5.
LAST_OF_HALF = [0, 1, 2, 3, 4, 5, 6, 7, 11, 15, 22, 31, 45, 63, 90]
# All 32 buckets for one direction: edges at 16 * 8^(k/16).
LAST_OF_CAUSAL = [*range(16), 18, 20, 23, 26, 30, 34, 39, 45, 51, 58, 66, 76, 86, 98, 112]


def bucket(away: int, last: list[int]) -> int:
    """The first bucket whose last distance is not before ``away``."""
    for number, distance in enumerate(last):
        if away <= distance:
            return number
    return len(last)


def test_buckets_of_both_directions_by_hand() -> None:
    distance = torch.arange(-300, 301)
    found = buckets_of(distance, 32, 128, causal=False)
    expected = [bucket(abs(d), LAST_OF_HALF) + (16 if d > 0 else 0) for d in range(-300, 301)]
    assert found.tolist() == expected
    # Distance 0 counts as before the query, so the first bucket of the other half stays empty.
    assert sorted(set(expected)) == [number for number in range(32) if number != 16]


def test_buckets_of_one_direction_by_hand() -> None:
    distance = torch.arange(-300, 301)
    found = buckets_of(distance, 32, 128, causal=True)
    assert found.tolist() == [bucket(max(-d, 0), LAST_OF_CAUSAL) for d in range(-300, 301)]
    assert found.unique().tolist() == list(range(32))


def test_buckets_keep_the_shape() -> None:
    distance = torch.arange(24).reshape(2, 3, 4) - 12
    assert buckets_of(distance, 8, 6, causal=False).shape == (2, 3, 4)


def table_of(bias: T5Bias, layer: int = 0) -> Tensor:
    """b of one layer, (H|1, buckets)."""
    return bias.tables()[layer].get_parameter("by_bucket")


def test_self_attention_by_hand() -> None:
    """Three positions, four buckets: 0 for the query itself, 1 before it, 3 behind it."""
    bias = T5Bias(AttentionShape(1, 1, D, 3, 3), "none", 4, 3)
    with torch.no_grad():
        table_of(bias).copy_(torch.tensor([[10.0, 20, 30, 40]]))
    by_hand = [
        [10.0, 40, 40],
        [20.0, 10, 40],
        [20.0, 20, 10],
    ]
    assert bias(range(3), range(3)).tolist() == [[by_hand]]


def test_the_decoder_by_hand() -> None:
    """Four buckets of one direction: distances 0, 1, 2 and, beyond, 3; later keys are never seen
    and share the bucket of 0.
    """
    bias = T5Bias(AttentionShape(1, 1, D, 4, 4, DECODER), "none", 4, 3)
    with torch.no_grad():
        table_of(bias).copy_(torch.tensor([[10.0, 20, 30, 40]]))
    by_hand = [
        [10.0, 10, 10, 10],
        [20.0, 10, 10, 10],
        [30.0, 20, 10, 10],
        [40.0, 30, 20, 10],
    ]
    assert bias(range(4), range(4)).tolist() == [[by_hand]]
    assert bias(range(3, 4), range(4)).tolist() == [[by_hand[3:]]]


def test_buckets_do_not_change_in_a_half_precision_model() -> None:
    """Half precision counts to 2048 and bfloat16 to 256: beyond, distances would fall together."""
    shape = AttentionShape(1, 1, D, 9, 11)
    for kind in (torch.float16, torch.bfloat16):
        bias = T5Bias(shape, "none", 64, 4096).to(kind)
        with torch.no_grad():
            table_of(bias).copy_(torch.arange(64)[None])
        out = bias(range(3000, 3001), range(3001))
        assert out.dtype == torch.float32
        numbers = buckets_of(torch.arange(3001) - 3000, 64, 4096, causal=False)
        assert torch.equal(out[0, 0, 0].long(), numbers)


def test_tables_start_small() -> None:
    table = table_of(T5Bias(AttentionShape(1, 512, D, 9, 11), "none", 64, 128))
    # 32,768 draws: their standard deviation is off by less than 2% (five times 0.4%).
    assert table.std().item() == pytest.approx(INIT_STD, rel=0.02)


def test_the_smallest_maximal_distance_still_makes_buckets() -> None:
    T5(buckets=32, max_distance=17)
    assert buckets_of(torch.arange(-40, 1), 32, 17, causal=True).unique().tolist() == [
        *range(17),
        31,
    ]
