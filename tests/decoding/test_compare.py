"""``diet-mt parity``: equal hypotheses, differences of scores and of tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq import utils

from diet_mt.decoding.parity import compare, in_float64


def hypothesis(tokens: list[int], score: float) -> dict[str, Any]:
    by_token = torch.full((len(tokens),), score / len(tokens))
    return {
        "tokens": torch.tensor(tokens),
        "score": torch.tensor(score),
        "positional_scores": by_token,
    }


A, B = hypothesis([5, 6, 2], -1.0), hypothesis([7, 2], -2.0)


def test_what_is_equal() -> None:
    found = compare([8, 9], [[A, B], [B]], [[A, B], [B]])
    assert found == {
        "sentences": 2,
        "hypotheses": 3,
        "equal": 3,
        "score_error": 0.0,
        "differences": [],
    }


def test_a_difference_of_scores_is_measured() -> None:
    near = hypothesis([5, 6, 2], -1.003)
    assert compare([8], [[A]], [[near]])["score_error"] == pytest.approx(0.003, abs=1e-6)


def test_a_difference_of_tokens_is_listed() -> None:
    twin = hypothesis([8, 2], -2.001)
    found = compare([4], [[A, B, twin]], [[A, twin, B]])
    assert found["equal"] == 1
    (difference,) = found["differences"]
    assert (difference["sentence"], difference["ranks"]) == (4, [2, 3])
    assert difference["largest_gap"] == pytest.approx(0.001, rel=0.01)


def test_another_number_of_hypotheses_is_listed() -> None:
    for ours, theirs in (([A, B], [A]), ([A], [A, B])):
        found = compare([4], [ours], [theirs])
        assert found["equal"] == 1
        (difference,) = found["differences"]
        assert (difference["ranks"], difference["largest_gap"]) == ([2], 0.0)
        assert difference["hypotheses"] == [len(ours), len(theirs)]


def test_models_computein_float64_for_a_while() -> None:
    model = torch.nn.Linear(3, 2)
    before = model.weight.clone()
    with in_float64([model]):
        scores = utils.log_softmax(model(torch.ones(1, 3, dtype=torch.float64)), dim=-1)
        assert (scores.dtype, scores.float().dtype) == (torch.float64, torch.float64)
    assert torch.equal(model.weight, before)
    assert torch.ones(1, dtype=torch.float64).float().dtype == torch.float32
