"""Positions at the input: sinusoids, SHAPE and CAPE in training."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.positions.absolute import SinusoidalInput, sinusoids
from diet_mt.positions.augmented import AugmentedInput, Cape, ShiftedInput
from diet_mt.system.errors import UserError

from .. import oracle
from ..toy import build

N, E, K = 9, 12, 3
B, T = 400, 7
# Values up to 1 in float32: half a unit in the last place is 3e-8.
ROUNDING = 1e-7


def test_late_positions_are_exact() -> None:
    """Angles are float64: in float32 the one of position 99,999 would be off by 0.004."""
    assert sinusoids(100_000, 4)[99_999, 0].item() == pytest.approx(math.sin(99_999), abs=ROUNDING)


def by_formula(positions: list[float]) -> Tensor:
    """(T, E) in float64."""
    rows = [[oracle.sinusoid({}, at, c, E) for c in range(E)] for at in positions]
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize(("sentences", "length"), [(400, 5), (100, N)])
def test_every_sentence_starts_somewhere_from_0_to_the_shift(sentences: int, length: int) -> None:
    """Also the longest ones."""
    added = ShiftedInput(N, E, K)(torch.zeros(sentences, length, dtype=torch.long), range(length))
    assert added.shape == (sentences, length, E)
    known = [by_formula([float(k + i) for i in range(length)]) for k in range(K + 1)]
    starts = []
    for rows in added:
        off = [(rows.double() - expected).abs().max().item() for expected in known]
        assert min(off) < ROUNDING
        starts.append(off.index(min(off)))
    # The standard deviation of 100 of 400 is below 9.
    assert all(0.15 < starts.count(k) / sentences < 0.35 for k in range(K + 1))


def test_source_and_target_are_shifted_separately() -> None:
    model = build("shape", position_shift=500)
    tokens = torch.zeros(6, 4, dtype=torch.long)
    source, target = (x.embed_positions(tokens, range(4)) for x in (model.encoder, model.decoder))
    assert len({row.sum().item() for row in source}) == 6
    assert not torch.equal(source[..., :2], target[..., :2])  # both begin with sin of the position


def cape(**options: Any) -> AugmentedInput:
    none = {"global_shift": 0.0, "local_shift": 0.0, "global_scale": 1.0}
    return AugmentedInput(N, E, Cape(**{**none, **options}))


ALL = {"global_shift": 5.0, "local_shift": 0.5, "global_scale": 1.5}


def moved(**options: Any) -> Tensor:
    """Positions of 7 tokens in each of 400 sentences."""
    positions = cape(**options).augmented(torch.arange(T), B)
    assert positions.shape == (B, T)
    assert positions.dtype == torch.float64
    return positions


def fills(values: Tensor, most: float) -> bool:
    """Whether ``values`` reach nearly everywhere from ``-most`` to ``most``, and no further."""
    return bool(-most <= values.min() < -0.97 * most and 0.97 * most < values.max() <= most)


def test_sentences_are_shifted_and_scaled_as_a_whole_and_tokens_by_themselves() -> None:
    shift = moved(global_shift=5.0) - torch.arange(T)
    torch.testing.assert_close(shift, shift[:, :1].expand(B, T), rtol=0, atol=1e-12)
    assert fills(shift, 5.0)
    shaken = moved(local_shift=0.5)
    assert fills(shaken - torch.arange(T), 0.5)
    assert (shaken - torch.arange(T)).unique().numel() == B * T
    assert (shaken.diff() > 0).all(), "half a token leaves the order"
    scale = moved(global_scale=1.5)[:, 1:] / torch.arange(1, T)
    torch.testing.assert_close(scale, scale[:, :1].expand(B, T - 1), rtol=1e-12, atol=0)
    assert fills(scale.log(), math.log(1.5))


def test_all_three_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws of 0.75 are half of the way to the upper end: (i + 2.5 + 0.25) * sqrt(1.44)."""
    monkeypatch.setattr(torch, "rand", lambda size, **kind: torch.full(size, 0.75, **kind))
    positions = cape(global_shift=5.0, local_shift=0.5, global_scale=1.44)
    expected = torch.tensor([[3.3, 4.5, 5.7]] * 2, dtype=torch.float64)
    torch.testing.assert_close(positions.augmented(torch.arange(3), 2), expected)


def test_rows_are_sinusoids_of_these_positions() -> None:
    augmented = cape(**ALL)
    torch.manual_seed(4)
    added = augmented(torch.zeros(3, 5, dtype=torch.long), range(5))
    torch.manual_seed(4)
    positions = augmented.augmented(torch.arange(5), 3)
    expected = torch.stack([by_formula(row.tolist()) for row in positions])
    torch.testing.assert_close(added.double(), expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("added", [ShiftedInput(N, E, K), cape(**ALL)], ids=["shape", "cape"])
def test_sentences_longer_than_the_table_and_evaluation(added: SinusoidalInput) -> None:
    """The shift makes no longer sentences possible."""
    for training in (True, False):
        with pytest.raises(UserError, match=r"10 tokens .* 9 positions"):
            added.train(training)(torch.zeros(2, N + 1), range(N + 1))
    assert torch.equal(added(torch.zeros(4, 5), range(2, 7)), sinusoids(N, E)[None, 2:7])


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_rows_have_the_precision_of_the_model(kind: torch.dtype) -> None:
    for added in (ShiftedInput(N, E, K), cape(**ALL)):
        assert added.to(kind)(torch.zeros(2, 3), range(3)).dtype == kind
