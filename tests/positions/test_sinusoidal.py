"""Sinusoids: values by hand, by formula and from fairseq."""

from __future__ import annotations

import math

import pytest
import torch
from fairseq.modules import SinusoidalPositionalEmbedding

from diet_mt.errors import UserError
from diet_mt.positions.sinusoidal import SinusoidalInput, sinusoids

# Values up to 1 in float32: half a unit in the last place is 3e-8.
ROUNDING = 1e-7


def test_width_four_by_hand() -> None:
    """Two frequencies, 1 and 1/10000: sin i, sin i/10000, cos i, cos i/10000."""
    by_hand = [
        [0.0, 0.0, 1.0, 1.0],
        [0.84147098, 0.00010000, 0.54030231, 1.0],
        [0.90929743, 0.00020000, -0.41614684, 0.99999998],
    ]
    torch.testing.assert_close(sinusoids(3, 4), torch.tensor(by_hand), rtol=0, atol=ROUNDING)


def test_equals_the_table_of_fairseq() -> None:
    """fairseq.modules.SinusoidalPositionalEmbedding, fairseq 0.12; it computes in float32."""
    theirs = SinusoidalPositionalEmbedding.get_embedding(60, 16)
    # Angles up to 59 in float32 carry an error of up to 2e-6 each, and fairseq's frequencies more.
    torch.testing.assert_close(sinusoids(60, 16), theirs, rtol=0, atol=2e-5)


def test_late_positions_are_exact() -> None:
    """Angles are float64: in float32 the one of position 99,999 would be off by 0.004."""
    assert sinusoids(100_000, 4)[99_999, 0].item() == pytest.approx(math.sin(99_999), abs=ROUNDING)


def test_rows_start_where_they_are_asked_to() -> None:
    term = SinusoidalInput(9, 12)
    assert term.rows(range(2, 7)).shape == (1, 5, 12)
    assert torch.equal(term.rows(range(2, 7))[0], sinusoids(9, 12)[2:7])
    assert torch.equal(term(torch.zeros(2, 5), range(5))[0], sinusoids(9, 12)[:5])


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(UserError, match="even --encoder-embed-dim and --decoder-embed-dim, not 13"):
        SinusoidalInput(9, 13)
