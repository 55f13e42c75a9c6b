"""Entries by distance, expanded to queries and keys and summed back."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.positions.relative import (
    gather_indexed,
    gather_relative,
    scatter_indexed,
    scatter_relative,
    toeplitz,
)

SIZES = range(1, 8)
PLACES = [(queries, keys, start) for queries in SIZES for keys in SIZES for start in (0, 1, 5, 20)]
any_clip = pytest.mark.parametrize("clip", range(1, 10))


@pytest.mark.parametrize("queries", [1, 2, 5])
@pytest.mark.parametrize("keys", [1, 2, 7])
def test_toeplitz_of_uneven_sizes_and_its_gradient(queries: int, keys: int) -> None:
    window = torch.randn(2, 3, queries + keys - 1, dtype=torch.float64, requires_grad=True)
    out = toeplitz(window, queries)
    assert out.shape == (2, 3, queries, keys)
    for i in range(queries):
        for j in range(keys):
            assert torch.equal(out[..., i, j], window[..., keys - 1 + i - j])
    assert torch.autograd.gradcheck(lambda x: toeplitz(x, queries), [window])


def integers(*shape: int) -> Tensor:
    """Random whole numbers, whose sums are exact."""
    return torch.randint(-50, 50, shape).double()


def rows_of(queries: int, keys: int, start: int, clip: int) -> Tensor:
    """The clipped offset of each query and key, as a row of a table: (T, S)."""
    rows = [
        [max(-clip, min(clip, j - start - i)) + clip for j in range(keys)] for i in range(queries)
    ]
    return torch.tensor(rows)


@any_clip
def test_gather_and_scatter_equal_loops(clip: int) -> None:
    for queries, keys, start in PLACES:
        rows = rows_of(queries, keys, start, clip)
        by_offset, weights = integers(2, 3, queries, 2 * clip + 1), integers(2, 3, queries, keys)
        gathered = gather_relative(by_offset, keys, start)
        assert gathered.shape == (2, 3, queries, keys)
        sums = torch.zeros(2, 3, queries, 2 * clip + 1, dtype=torch.float64)
        for i in range(queries):
            for j in range(keys):
                assert torch.equal(gathered[..., i, j], by_offset[..., i, rows[i, j]])
                sums[..., i, rows[i, j]] += weights[..., i, j]
        assert torch.equal(scatter_relative(weights, clip, start), sums)
        assert torch.equal(gather_indexed(by_offset, rows), gathered)
        assert torch.equal(scatter_indexed(weights, rows, 2 * clip + 1), sums)


@any_clip
def test_each_is_the_gradient_of_the_other(clip: int) -> None:
    for queries, keys, start in PLACES:
        by_offset = integers(2, queries, 2 * clip + 1).requires_grad_()
        weights = integers(2, queries, keys).requires_grad_()
        (gather_relative(by_offset, keys, start) * weights.detach()).sum().backward()
        assert torch.equal(by_offset.grad, scatter_relative(weights, clip, start))
        (scatter_relative(weights, clip, start) * by_offset.detach()).sum().backward()
        assert torch.equal(weights.grad, gather_relative(by_offset, keys, start))
