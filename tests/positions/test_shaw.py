"""Shaw et al.: the vector of a clipped distance meets the query, and the weights collect it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.positions import AttentionShape
from diet_mt.positions.clipped import collect, spread
from diet_mt.positions.shaw import Shaw, ShawPositions

from ..toy import sharing_modes
from .one_layer import part_of

B, L, H, T, S, D, CLIP = 2, 2, 3, 5, 7, 4, 2
SHAPE = AttentionShape(L, H, D, 9, 11)
SIZES = range(1, 8)
CLIPS = range(1, 10)


def clipped(distance: int, clip: int) -> int:
    return max(-clip, min(clip, distance))


def integers(*shape: int) -> Tensor:
    """Random whole numbers, whose sums are exact."""
    return torch.randint(-50, 50, shape).double()


def test_spread_by_hand() -> None:
    """Clip 1. Query 0 has distances 0, 1, 2 to three keys, query 1 has -1, 0, 1."""
    by_distance = torch.tensor([[10, 20, 30], [40, 50, 60]])
    assert spread(by_distance, 3).tolist() == [[20, 30, 30], [40, 50, 60]]
    assert spread(by_distance[:1], 3).tolist() == [[20, 30, 30]]


def test_collect_by_hand() -> None:
    """The same two queries: weights at distances -1 or less, 0, and 1 or more."""
    weights = torch.tensor([[1.0, 2, 4], [8, 16, 32]])
    assert collect(weights, 1).tolist() == [[0, 1, 6], [8, 16, 32]]


PLACES = [(queries, keys, start) for queries in SIZES for keys in SIZES for start in (0, 1, 5, 20)]


@pytest.mark.parametrize("clip", CLIPS)
def test_spread_equals_loops(clip: int) -> None:
    for queries, keys, start in PLACES:
        by_distance = integers(2, 3, queries, 2 * clip + 1)
        out = spread(by_distance, keys, start)
        assert out.shape == (2, 3, queries, keys)
        for i in range(queries):
            for j in range(keys):
                column = clipped(j - start - i, clip) + clip
                assert torch.equal(out[..., i, j], by_distance[..., i, column])


@pytest.mark.parametrize("clip", CLIPS)
def test_collect_equals_loops(clip: int) -> None:
    for queries, keys, start in PLACES:
        weights = integers(2, 3, queries, keys)
        expected = torch.zeros(2, 3, queries, 2 * clip + 1, dtype=torch.float64)
        for i in range(queries):
            for j in range(keys):
                expected[..., i, clipped(j - start - i, clip) + clip] += weights[..., i, j]
        assert torch.equal(collect(weights, clip, start), expected)


@pytest.mark.parametrize("clip", CLIPS)
def test_collect_is_the_transpose_of_spread(clip: int) -> None:
    """Each is the other's gradient."""
    for queries, keys, start in PLACES:
        by_distance = integers(2, queries, 2 * clip + 1).requires_grad_()
        weights = integers(2, queries, keys).requires_grad_()
        (spread(by_distance, keys, start) * weights.detach()).sum().backward()
        assert torch.equal(by_distance.grad, collect(weights, clip, start))
        (collect(weights, clip, start) * by_distance.detach()).sum().backward()
        assert torch.equal(weights.grad, spread(by_distance, keys, start))


@pytest.mark.parametrize("clip", [CLIP, 16])
@pytest.mark.parametrize(("start", "keys"), [(4, S), (8, 9), (8, 3)])
def test_a_step_is_a_row_of_the_whole(clip: int, start: int, keys: int) -> None:
    """Also where the query stands further behind than there are keys, and the clip cuts nothing."""
    positions = ShawPositions(SHAPE, "none", clip, values=True)
    whole, step = part_of(positions, 1, 0, 9, keys), part_of(positions, 1, start, 1, keys)
    q, weights = torch.randn(B, H, 9, D), torch.rand(B, H, 9, keys)
    row = slice(start, start + 1)
    for method, given, more in (("query_bias", q, (keys, 0.5)), ("output", weights, ())):
        expected = getattr(whole, method)(given, *more)[:, :, row]
        torch.testing.assert_close(getattr(step, method)(given[:, :, row], *more), expected)


def test_values_stay_unless_asked_for() -> None:
    part = part_of(Shaw().attention_positions(SHAPE), 0, 0, T, S)
    assert not part.changes_output
    assert part.output(torch.ones(B, H, T, S)) is None
    assert part_of(Shaw(values=True).attention_positions(SHAPE), 0, 0, T, S).changes_output


def test_a_half_precision_model_answers_in_its_precision() -> None:
    positions = ShawPositions(SHAPE, "none", CLIP, values=True).to(torch.bfloat16)
    part = part_of(positions, 0, 0, T, S)
    added = part.query_bias(torch.ones(B, H, T, D, dtype=torch.bfloat16), S, 0.5)
    mixed = part.output(torch.ones(B, H, T, S, dtype=torch.bfloat16))
    assert added is not None
    assert mixed is not None
    assert added.dtype == mixed.dtype == torch.bfloat16


@pytest.mark.parametrize("sharing", sharing_modes("shaw"))
def test_vectors_start_like_a_projection(sharing: str) -> None:
    """Glorot and Bengio's range for a matrix of 2c + 1 rows and D columns, for every head alike."""
    shape = AttentionShape(1, 40, 50, 9, 11)
    table = ShawPositions(shape, sharing, 16, values=True).tables()[0]
    bound = (6 / (33 + 50)) ** 0.5
    for rows in table.parameters():
        assert rows.shape == (1 if sharing == "head-wise" else 40, 33, 50)
        # 1650 draws at least: the largest is within 1% of the bound but once in ten million.
        assert 0.99 * bound < rows.abs().max().item() <= bound
        assert abs(rows.mean().item()) < 0.05
