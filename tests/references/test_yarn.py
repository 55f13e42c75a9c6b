"""Scaled rotary frequencies against ``modeling_rope_utils.py`` of transformers."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.positions.frequencies import Scaling

from .outside import transformers

INITIAL = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS

# Theirs are float32.
ROUNDING = 1e-6

SIZES = (8, 16, 32, 64, 96, 128)
FACTORS = (1.0, 2.0, 4.0, 10.5, 32.0)


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


def close(found: Tensor, expected: Tensor, case: object) -> None:
    torch.testing.assert_close(found.float(), expected, rtol=ROUNDING, atol=0, msg=str(case))


def test_yarn() -> None:
    for case in product(SIZES, (24, 100, 1024, 4096), FACTORS):
        size, length, factor = case
        speeds, longer = theirs("yarn", size, length, factor)
        ours = Scaling("yarn", factor, length)
        close(ours.speeds(size), speeds, case)
        assert ours.attention_factor() == pytest.approx(longer, rel=1e-15), case


def test_position_interpolation() -> None:
    for size, factor in product(SIZES, FACTORS):
        speeds, longer = theirs("linear", size, 100, factor)
        close(Scaling("linear", factor).speeds(size), speeds, (size, factor))
        assert longer == 1


def test_ntk() -> None:
    """Their dynamic form at a sentence s times as long as those of training has the factor s^2 - s
    + 1 in the place of s, which ours gets.
    """
    for case in product(SIZES, (100, 1024), (1.0, 2.0, 4.0)):
        size, length, factor = case
        speeds, _ = theirs("dynamic", size, length, factor)
        stretched = factor * factor - (factor - 1)
        close(Scaling("ntk", stretched).speeds(size), speeds, case)
