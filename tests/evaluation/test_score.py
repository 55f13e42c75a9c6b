"""Scores of translations, and the name of the file that they are kept in."""

from __future__ import annotations

import math
import os
from typing import Any

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.evaluate import USUAL, hypotheses_name, words_per_second
from diet_mt.evaluation.generation import Output
from diet_mt.evaluation.scores import interval, score


def test_bleu_by_hand() -> None:
    # Every n-gram is right, and one of six words is missing: the brevity penalty alone remains.
    scores = score(["a b c d e"], ["a b c d e f"])
    assert scores.bleu == pytest.approx(100 * math.exp(1 - 6 / 5), abs=1e-4)
    assert "tok:13a" in scores.bleu_signature
    assert "nc:6" in scores.chrf_signature
    assert score(["Ein Hund."], ["Ein Hund."]).chrf == 100


def test_the_interval_of_bleu() -> None:
    """A score that every resample has has no width; that of half-right sentences has."""
    right = ["a b c d e"] * 8
    assert interval(right, right) == (100.0, 0.0)
    mixed = ["a b c d e", "a b c d x"] * 4
    mean, half = interval(mixed, right)
    assert interval(mixed, right) == (mean, half)
    assert mean == pytest.approx(score(mixed, right).bleu, abs=3)
    assert 3 < half < 30


def test_the_interval_is_the_same_in_any_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed, right = ["a b c d e", "a b c d x"] * 4, ["a b c d e"] * 8
    usual = interval(mixed, right)
    for seed in ("7", "none"):
        monkeypatch.setenv("SACREBLEU_SEED", seed)
        assert interval(mixed, right) == usual
        assert os.environ["SACREBLEU_SEED"] == seed


def test_words_per_second_by_hand() -> None:
    # Three sentences of four words in all, six sentences a second: half a second.
    output = Output([], sentences_per_second=6.0, tokens_per_second=1.0)
    assert words_per_second(["ein Hund", "", "zwei Katzen"], output) == 8.0


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(UserError, match="1 hypotheses but 2 references"):
        score(["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "c/x_tiny.3.hyp.txt"),
        ({"beam": 5, "lenpen": 1.0}, "c/x_tiny.3.beam-5.lenpen-1.0.hyp.txt"),
        ({"subset": "valid"}, "c/x_tiny.3.subset-valid.hyp.txt"),
        ({"checkpoint": "averaged.pt"}, "c/x_tiny.3.checkpoint-averaged.hyp.txt"),
        ({"length_penalty": "gnmt"}, "c/x_tiny.3.length_penalty-gnmt.hyp.txt"),
        ({"direction": "en-de"}, "c/x_tiny.3.direction-en-de.hyp.txt"),
        ({"options": "01234567"}, "c/x_tiny.3.options-01234567.hyp.txt"),
    ],
)
def test_other_ways_of_decoding_have_files_of_their_own(
    changes: dict[str, Any], expected: str
) -> None:
    assert hypotheses_name("c", "x_tiny", 3, **{**USUAL, **changes}) == expected
