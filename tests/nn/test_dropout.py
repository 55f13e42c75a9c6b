"""Dropout drops the right share, and scales so that the expectation stays."""

from __future__ import annotations

import pytest
import torch

from diet_mt.nn.dropout import dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_rate_and_scale(p: float) -> None:
    torch.manual_seed(1)
    x = torch.ones(1000, 1001)
    out = dropout(x, p)
    rate = out.eq(0).double().mean().item()
    # Six standard deviations of a million draws.
    assert abs(rate - p) < 6 * (p * (1 - p) / x.numel()) ** 0.5 + 2**-17
    scaled = out[out != 0]
    assert scaled.unique().numel() == 1
    assert scaled[0].item() == pytest.approx(1 / (1 - p), rel=2e-4)


def test_neighbours_are_independent() -> None:
    # Four values share one 64-bit draw.
    torch.manual_seed(2)
    dropped = dropout(torch.ones(250_000, 4), 0.3).eq(0).double()
    correlation = torch.corrcoef(dropped.t())
    assert (correlation - torch.eye(4, dtype=torch.double)).abs().max() < 0.012


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_any_shape_and_dtype(dtype: torch.dtype) -> None:
    for shape in ((), (1,), (3,), (5, 7), (0, 4)):
        out = dropout(torch.ones(shape, dtype=dtype), 0.5)
        assert (out.shape, out.dtype) == (shape, dtype)
        assert set(out.flatten().tolist()) <= {0.0, 2.0}


def test_gradient_is_dropped_with_the_value() -> None:
    torch.manual_seed(3)
    x = torch.ones(64, 3, requires_grad=True)
    out = dropout(x.t(), 0.4)  # not contiguous
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad.t(), out.detach())


def test_follows_the_generator_of_torch() -> None:
    x = torch.ones(100)
    torch.manual_seed(4)
    first, second = dropout(x, 0.5), dropout(x, 0.5)
    torch.manual_seed(4)
    assert torch.equal(dropout(x, 0.5), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(("p", "value"), [(0.0, 1.0), (1e-9, 1.0), (1.0, 0.0)])
def test_ends_of_the_range(p: float, value: float) -> None:
    assert dropout(torch.ones(1000), p).tolist() == pytest.approx([value] * 1000)
