"""Learned positions at the input."""

from __future__ import annotations

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.positions import AttentionShape
from diet_mt.positions.learned import Learned, LearnedInput


def test_rows_are_those_of_the_table() -> None:
    term = LearnedInput(9, 12)
    assert term.rows(2, 7).shape == (1, 5, 12)
    assert torch.equal(term.rows(2, 7)[0], term.weight[2:7])
    assert torch.equal(term(torch.zeros(2, 5))[0], term.weight[:5])


def test_starts_like_token_embeddings() -> None:
    # 16,384 draws of standard deviation 64^-0.5 = 0.125, known to 0.6% (one deviation).
    assert LearnedInput(256, 64).weight.std().item() == pytest.approx(0.125, rel=0.03)


def test_positions_beyond_the_table_are_refused() -> None:
    with pytest.raises(UserError, match=r"10 tokens.*9 positions.*--max-source-positions"):
        LearnedInput(9, 12).rows(9, 10)


def test_nothing_is_added_to_the_logits() -> None:
    assert Learned().attention_positions(AttentionShape(2, 3, 4, 9, 11)) is None
    assert isinstance(Learned().input_positions(9, 12), LearnedInput)
