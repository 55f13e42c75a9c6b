"""Biases by distance: one value per distance becomes one per query and key."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.positions.relative import distances, toeplitz


@pytest.mark.parametrize("queries", [1, 2, 5])
@pytest.mark.parametrize("keys", [1, 2, 7])
def test_toeplitz_of_uneven_sizes_and_its_gradient(queries: int, keys: int) -> None:
    window = torch.randn(2, 3, queries + keys - 1, dtype=torch.float64, requires_grad=True)
    out = toeplitz(window, queries)
    assert out.shape == (2, 3, queries, keys)
    for i in range(queries):
        for j in range(keys):
            assert torch.equal(out[..., i, j], window[..., keys - 1 + i - j])

    def run(x: Tensor) -> Tensor:
        return toeplitz(x, queries)

    assert torch.autograd.gradcheck(run, [window])


def test_distances_include_both_ends() -> None:
    assert distances(-2, 3, torch.device("cpu")).tolist() == [-2, -1, 0, 1, 2, 3]
    assert distances(4, 4, torch.device("cpu")).tolist() == [4]
