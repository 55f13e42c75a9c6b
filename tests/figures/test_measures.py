"""Rank, distance and locality, on matrices for which they are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diet_mt.figures.measures import by_distance, look, ranks


def test_rank_counts_what_torch_counts() -> None:
    left, right = torch.randn(3, 2, 12, 5).double(), torch.randn(3, 2, 5, 9).double()
    matrices = left @ right
    found = ranks(matrices)
    assert torch.equal(found.rank, torch.linalg.matrix_rank(matrices, rtol=1e-9))
    assert found.rank.unique().tolist() == [5]


def test_the_effective_rank_is_that_of_equal_values_and_less_of_others() -> None:
    equal = torch.diag(torch.tensor([2.0, 2, 2, 0])).double()
    steep = torch.diag(torch.tensor([9.0, 1, 1, 0])).double()
    zero = torch.zeros(4, 4).double()
    values = ranks(torch.stack([equal, steep, zero]))
    assert values.rank.tolist() == [3, 3, 0]
    assert values.effective[0] == pytest.approx(3)
    shares = np.array([9, 1, 1]) / 11
    assert values.effective[1] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    assert values.effective[2] == 0


def test_the_value_of_a_distance_stands_where_it_is_asked() -> None:
    matrix = torch.tensor([[10.0 * (i - j) for j in range(4)] for i in range(3)])
    values = by_distance(torch.stack([matrix, matrix + 1]))
    assert values is not None
    assert values[0].tolist() == [10.0 * distance for distance in range(-3, 3)]
    assert values[1].tolist() == [10.0 * distance + 1 for distance in range(-3, 3)]


def test_one_entry_aside_is_no_function_of_the_distance() -> None:
    matrix = torch.tensor([[float(i - j) for j in range(4)] for i in range(3)]).double()
    matrix[2, 1] += 1e-6
    assert by_distance(matrix) is None


@pytest.mark.parametrize(
    ("shift", "pattern", "near"), [(0, "local", 1.0), (2, "local", 1.0), (5, "shifted", 0.25)]
)
def test_a_head_that_looks_so_far_back(shift: int, pattern: str, near: float) -> None:
    """All weight ``shift`` tokens before the query; at the beginning, on the first token."""
    weights = torch.zeros(1, 12, 12).double()
    for query in range(12):
        weights[0, query, max(query - shift, 0)] = 1
    found = look(weights, torch.ones(1, 12, 12).bool(), 2)
    assert (found.peak, found.pattern) == (shift, pattern)
    assert found.near == pytest.approx(near)


def test_equal_weights_are_global_and_padding_does_not_count() -> None:
    """Five real tokens of eight, in a causal triangle."""
    allowed = torch.zeros(1, 8, 8).bool()
    allowed[0, :5, :5] = True
    allowed = allowed.tril()
    weights = torch.full((1, 8, 8), 7.0).double()  # of padding: nonsense
    for query in range(5):
        weights[0, query, : query + 1] = 1 / (query + 1)
    found = look(weights, allowed, 1)
    by_hand = np.mean([1, 1, 2 / 3, 2 / 4, 2 / 5])
    assert found.near == pytest.approx(by_hand)
    assert found.flat == pytest.approx(by_hand)
    equal = look(torch.full((1, 20, 20), 0.05).double(), torch.ones(1, 20, 20).bool(), 1)
    assert equal.pattern == "global"


def test_a_peak_is_found_where_no_distance_is_open_to_half_of_the_queries() -> None:
    """Nine queries, three keys; all weight on the first key."""
    weights = torch.zeros(1, 9, 3).double()
    weights[..., 0] = 1
    found = look(weights, torch.ones(1, 9, 3).bool(), 1)
    assert found.peak in range(7)
