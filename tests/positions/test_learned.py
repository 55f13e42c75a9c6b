"""Learned positions at the input."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions.learned import LearnedInput


def test_rows_are_those_of_the_table() -> None:
    term = LearnedInput(9, 12)
    assert term.rows(range(2, 7)).shape == (1, 5, 12)
    assert torch.equal(term.rows(range(2, 7))[0], term.weight[2:7])
    assert torch.equal(term(torch.zeros(2, 5), range(5))[0], term.weight[:5])


def test_starts_like_token_embeddings() -> None:
    # 16,384 draws of standard deviation 64^-0.5 = 0.125, known to 0.6% (one deviation).
    assert LearnedInput(256, 64).weight.std().item() == pytest.approx(0.125, rel=0.03)
