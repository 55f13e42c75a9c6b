"""Positional term and masks of a stack, layer by layer."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from diet_mt.layers.offsets import LayerOffsets

L, B, H, T, S = 2, 5, 3, 6, 7


def mask(shape: tuple[int, ...]) -> Tensor:
    closed = torch.rand(shape) < 0.3
    return torch.zeros(shape, dtype=torch.float64).masked_fill_(closed, -math.inf)


@pytest.mark.parametrize("mask_shape", [(B, 1, 1, S), (1, 1, T, S)], ids=str)
@pytest.mark.parametrize("heads", [1, H])
def test_each_layer_gets_its_own_term_and_the_mask(mask_shape: tuple[int, ...], heads: int) -> None:
    bias, closed = torch.randn(L, heads, T, S, dtype=torch.float64), mask(mask_shape)
    offsets = LayerOffsets(bias, closed)
    for layer in range(L):
        found = offsets.of(layer)
        assert found is not None
        expected = bias[layer] + closed
        assert found.shape == expected.shape
        assert torch.equal(found, expected)


def test_a_shared_term_is_joined_with_the_mask_once() -> None:
    offsets = LayerOffsets(torch.randn(1, H, T, S), mask((B, 1, 1, S)).float())
    assert offsets.of(0) is offsets.of(1)


def test_without_a_mask_and_without_a_term() -> None:
    bias, closed = torch.randn(L, H, T, S), mask((B, 1, 1, S))
    assert torch.equal(LayerOffsets(bias, None).of(1), bias[1:])  # type: ignore[arg-type]
    assert LayerOffsets(None, closed).of(1) is closed
    assert LayerOffsets(None, None).of(1) is None


def test_offsets_take_the_precision_of_the_model() -> None:
    """A term computed in float32 must not turn a half-precision model's logits into float32."""
    closed = mask((B, 1, 1, S)).half()
    found = LayerOffsets(torch.randn(L, H, T, S), closed).of(0)
    assert found is not None
    assert found.dtype == torch.float16
