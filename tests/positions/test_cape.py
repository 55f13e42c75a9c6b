"""CAPE: positions that are shifted, shaken and scaled in training."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.errors import UserError
from diet_mt.positions.cape import AugmentedInput
from diet_mt.positions.sinusoidal import sinusoids

from .. import oracle

N, E = 9, 12
B, T = 400, 7
# Values up to 1 in float32: half a unit in the last place is 3e-8.
ROUNDING = 1e-7


def term(**given: Any) -> AugmentedInput:
    none = {"global_shift": 0.0, "local_shift": 0.0, "global_scale": 1.0}
    return AugmentedInput(N, E, **{**none, **given})


def moved(**given: Any) -> Tensor:
    """Positions of 7 tokens in each of 400 sentences."""
    found = term(**given).augmented(torch.arange(T), B)
    assert found.shape == (B, T)
    assert found.dtype == torch.float64
    return found


def fills(values: Tensor, most: float) -> bool:
    """Whether ``values`` reach nearly everywhere from ``-most`` to ``most``, and no further."""
    return bool(-most <= values.min() < -0.97 * most and 0.97 * most < values.max() <= most)


def test_a_sentence_is_shifted_as_a_whole() -> None:
    shift = moved(global_shift=5.0) - torch.arange(T)
    torch.testing.assert_close(shift, shift[:, :1].expand(B, T), rtol=0, atol=1e-12)
    assert fills(shift, 5.0)


def test_every_token_is_shaken_by_itself() -> None:
    shift = moved(local_shift=0.5) - torch.arange(T)
    assert fills(shift, 0.5)
    assert shift.unique().numel() == B * T
    assert (moved(local_shift=0.5).diff() > 0).all(), "half a token leaves the order"


def test_a_sentence_is_stretched_as_a_whole() -> None:
    scale = moved(global_scale=1.5)[:, 1:] / torch.arange(1, T)
    torch.testing.assert_close(scale, scale[:, :1].expand(B, T - 1), rtol=1e-12, atol=0)
    assert fills(scale.log(), math.log(1.5))


def test_all_three_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws of 0.75 are half of the way to the upper end: (i + 2.5 + 0.25) * sqrt(1.44)."""
    monkeypatch.setattr(torch, "rand", lambda size, **kind: torch.full(size, 0.75, **kind))
    found = term(global_shift=5.0, local_shift=0.5, global_scale=1.44).augmented(torch.arange(3), 2)
    expected = torch.tensor([[3.3, 4.5, 5.7]] * 2, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_rows_are_sinusoids_of_these_positions() -> None:
    augmented = term(global_shift=5.0, local_shift=0.5, global_scale=1.5)
    tokens = torch.zeros(3, 5, dtype=torch.long)
    torch.manual_seed(4)
    found = augmented(tokens, range(5))
    torch.manual_seed(4)
    positions = augmented.augmented(torch.arange(5), 3)
    assert found.shape == (3, 5, E)
    for b in range(3):
        for i in range(5):
            for c in range(E):
                expected = oracle.sinusoid({}, positions[b, i].item(), c, E)  # type: ignore[arg-type]
                assert found[b, i, c].item() == pytest.approx(expected, abs=ROUNDING)


def test_nothing_moves_outside_of_training() -> None:
    still = term(global_shift=5.0, local_shift=0.5, global_scale=1.5).eval()
    assert torch.equal(still(torch.zeros(4, 5), range(2, 7)), sinusoids(N, E)[None, 2:7])
    assert torch.equal(term()(torch.zeros(4, 5), range(5)), sinusoids(N, E)[None, :5])


def test_longer_sentences_are_refused_in_training_too() -> None:
    with pytest.raises(UserError, match="10 tokens is longer than the 9 positions"):
        term(global_shift=5.0)(torch.zeros(2, N + 1), range(N + 1))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_rows_come_in_the_precision_of_the_model(kind: torch.dtype) -> None:
    assert term(global_shift=5.0).to(kind)(torch.zeros(2, 3), range(3)).dtype == kind
