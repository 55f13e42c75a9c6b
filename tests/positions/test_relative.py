"""Entries by distance, expanded to queries and keys and summed back: Shaw, DeBERTa, the base."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from diet_mt.positions import create
from diet_mt.positions.relative import (
    distances,
    gather_indexed,
    gather_relative,
    scatter_indexed,
    scatter_relative,
    toeplitz,
)

B, L, H, T, S, D = 2, 2, 3, 5, 7, 4
SHAPE = {"layers": L, "heads": H, "head_dim": D, "max_length": 9, "max_keys": 11}
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


def test_distances_include_both_ends() -> None:
    assert distances(-2, 3, torch.device("cpu")).tolist() == [-2, -1, 0, 1, 2, 3]


def integers(*shape: int) -> Tensor:
    """Random whole numbers, whose sums are exact."""
    return torch.randint(-50, 50, shape).double()


def rows_of(queries: int, keys: int, start: int, clip: int) -> Tensor:
    """The clipped offset of each query and key, as a row of a table: (T, S)."""
    rows = [
        [max(-clip, min(clip, j - start - i)) + clip for j in range(keys)] for i in range(queries)
    ]
    return torch.tensor(rows)


def test_gather_and_scatter_by_hand() -> None:
    """Clip 1. Query 0 has offsets 0, 1, 2 to three keys, query 1 has -1, 0, 1."""
    by_offset = torch.tensor([[10, 20, 30], [40, 50, 60]])
    assert gather_relative(by_offset, 3).tolist() == [[20, 30, 30], [40, 50, 60]]
    assert gather_relative(by_offset[:1], 3).tolist() == [[20, 30, 30]]
    weights = torch.tensor([[1.0, 2, 4], [8, 16, 32]])
    assert scatter_relative(weights, 1).tolist() == [[0, 1, 6], [8, 16, 32]]


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


@pytest.mark.parametrize("clip", [2, 16])
@pytest.mark.parametrize(("start", "keys"), [(4, S), (8, 9), (8, 3)])
def test_vectors_of_values_in_a_step(clip: int, start: int, keys: int) -> None:
    """Also where the query is further behind than there are keys, and the clip cuts nothing; and
    at positions that are given as tensors.
    """
    positions = create("shaw", clip=clip, values=True, **SHAPE)
    weights, one = torch.rand(B, H, 9, keys), range(start, start + 1)
    whole = positions.for_layers(range(9), range(keys))[1].output(weights)
    assert whole is not None
    row = slice(start, start + 1)
    for at in ((one, range(keys)), (torch.tensor([start]), torch.arange(keys))):
        terms = positions.for_layers(*at)[1]
        assert terms.changes_output
        torch.testing.assert_close(terms.output(weights[:, :, row]), whole[:, :, row])


def test_shaw_has_vectors_of_half_precision() -> None:
    built = create("shaw", clip=2, values=True, **SHAPE)
    terms = built.to(torch.bfloat16).for_layers(range(T), range(S))[0]
    added = terms.output(torch.ones(B, H, T, S, dtype=torch.bfloat16))
    assert added is not None
    assert added.dtype == torch.bfloat16


def test_keys_of_deberta_in_any_order() -> None:
    """A step of the search may hold them so, together with their positions."""
    positions = create("deberta", clip=3, **SHAPE)
    for parameter in positions.double().parameters():
        nn.init.normal_(parameter)
    k = torch.randn(B, H, 6, D, dtype=torch.float64)
    step = positions.for_layers(range(5, 6), range(6))[1]
    in_order = step.key_bias(k, 0.3)
    assert in_order is not None
    places = torch.stack([torch.randperm(6) for _ in range(B)])
    moved = torch.stack([k[b][:, places[b]] for b in range(B)])
    expected = torch.stack([in_order[b][..., places[b]] for b in range(B)])
    torch.testing.assert_close(step.key_bias(moved, 0.3, places), expected, rtol=0, atol=1e-12)
