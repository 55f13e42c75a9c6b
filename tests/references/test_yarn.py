"""Scaled rotary frequencies against ``modeling_rope_utils.py`` of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.positions.frequencies import Scaling

from .outside import transformers

INITIAL = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS

# Theirs are float32.
ROUNDING = 1e-6

any_size = pytest.mark.parametrize("size", [8, 16, 32, 64, 96, 128])
any_factor = pytest.mark.parametrize("factor", [1.0, 2.0, 4.0, 10.5, 32.0])


def theirs(kind: str, size: int, length: int, factor: float) -> tuple[Tensor, float]:
    """Speeds (D/2,) and the factor of queries and keys."""
    given: dict[str, Any] = {"rope_type": kind, "rope_theta": 10000.0, "factor": factor}
    if kind == "yarn":
        given["original_max_position_embeddings"] = length
    config = transformers.LlamaConfig(
        hidden_size=2 * size,
        num_attention_heads=2,
        max_position_embeddings=length,
        rope_parameters=given,
    )
    # For "dynamic": as if the sentence were ``factor`` times as long as those of training.
    asked = {"seq_len": int(length * factor)} if kind == "dynamic" else {}
    speeds, longer = INITIAL[kind](config, torch.device("cpu"), **asked)
    return speeds, longer


@any_size
@any_factor
@pytest.mark.parametrize("length", [24, 100, 1024, 4096])
def test_yarn(size: int, factor: float, length: int) -> None:
    speeds, longer = theirs("yarn", size, length, factor)
    ours = Scaling("yarn", factor, length)
    torch.testing.assert_close(ours.speeds(size).float(), speeds, rtol=ROUNDING, atol=0)
    assert ours.attention_factor() == pytest.approx(longer, rel=1e-15)


@any_size
@any_factor
def test_position_interpolation(size: int, factor: float) -> None:
    speeds, longer = theirs("linear", size, 100, factor)
    found = Scaling("linear", factor).speeds(size).float()
    torch.testing.assert_close(found, speeds, rtol=ROUNDING, atol=0)
    assert longer == 1


@any_size
@pytest.mark.parametrize("length", [100, 1024])
@pytest.mark.parametrize("factor", [1.0, 2.0, 4.0])
def test_ntk(size: int, length: int, factor: float) -> None:
    """Their dynamic form at a sentence s times as long as those of training has the factor s^2 - s
    + 1 in the place of s, which ours gets.
    """
    speeds, _ = theirs("dynamic", size, length, factor)
    stretched = factor * factor - (factor - 1)
    found = Scaling("ntk", stretched).speeds(size).float()
    torch.testing.assert_close(found, speeds, rtol=ROUNDING, atol=0)
