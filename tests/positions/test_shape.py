"""SHAPE: a sentence starts at a random position in training, at 0 otherwise."""

from __future__ import annotations

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.positions.shape import ShiftedInput
from diet_mt.positions.sinusoidal import sinusoids

from .. import oracle
from ..toy import build

N, E, K = 9, 12, 3
# Values up to 1 in float32: half a unit in the last place is 3e-8.
ROUNDING = 1e-7


def starts(term: ShiftedInput, sentences: int, length: int) -> list[int]:
    """Where each sentence of a batch begins, after every number was compared with the formula."""
    found = term(torch.zeros(sentences, length, dtype=torch.long), range(length))
    assert found.shape == (sentences, length, E)
    at = [
        torch.tensor(
            [[oracle.sinusoid({}, k + i, c, E) for c in range(E)] for i in range(length)],
            dtype=torch.float64,
        )
        for k in range(K + 1)
    ]
    result = []
    for rows in found:
        off = [(rows.double() - expected).abs().max().item() for expected in at]
        assert min(off) < ROUNDING
        result.append(off.index(min(off)))
    return result


def test_a_shift_of_one_by_hand() -> None:
    """Width 4: sin i, sin i/10000, cos i, cos i/10000, here of 1 and 2, or of 0 and 1."""
    rows = [
        [0.0, 0.0, 1.0, 1.0],
        [0.84147098, 0.00010000, 0.54030231, 1.0],
        [0.90929743, 0.00020000, -0.41614684, 0.99999998],
    ]
    term = ShiftedInput(2, 4, 1)
    found = {tuple(row[0].tolist()): row for row in term(torch.zeros(40, 2), range(2))}
    assert len(found) == 2
    for first, row in found.items():
        start = 0 if first[0] == 0 else 1
        expected = torch.tensor(rows[start : start + 2])
        torch.testing.assert_close(row, expected, rtol=0, atol=ROUNDING)


def test_every_sentence_starts_somewhere_from_0_to_k() -> None:
    found = starts(ShiftedInput(N, E, K), 400, 5)
    assert set(found) == set(range(K + 1))
    # 100 each; the standard deviation is below 9.
    assert all(60 <= found.count(k) <= 140 for k in range(K + 1))


def test_the_longest_sentence_can_be_shifted_as_far() -> None:
    assert set(starts(ShiftedInput(N, E, K), 100, N)) == set(range(K + 1))


def test_no_shift_outside_of_training() -> None:
    term = ShiftedInput(N, E, K).eval()
    assert torch.equal(term(torch.zeros(4, 5), range(2, 7)), sinusoids(N, E)[None, 2:7])
    assert torch.equal(
        ShiftedInput(N, E, 0)(torch.zeros(4, 5), range(5)), sinusoids(N, E)[None, :5]
    )


def test_the_shift_does_not_make_longer_sentences_possible() -> None:
    for term in (ShiftedInput(N, E, K), ShiftedInput(N, E, K).eval()):
        with pytest.raises(UserError, match="10 tokens is longer than the 9 positions"):
            term(torch.zeros(2, N + 1), range(N + 1))


def test_source_and_target_are_shifted_apart() -> None:
    model = build("shape", position_shift=500)
    tokens = torch.zeros(6, 4, dtype=torch.long)
    at = range(tokens.size(1))
    source, target = (each.embed_positions(tokens, at) for each in (model.encoder, model.decoder))
    assert len({row.sum().item() for row in source}) == 6
    assert not torch.equal(source[..., :2], target[..., :2])  # both begin with sin of the position
