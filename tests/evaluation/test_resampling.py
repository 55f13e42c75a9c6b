"""The bootstrap over sentences and seeds, against SacreBLEU and against cases by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from diet_mt.evaluation.resampling import (
    RESAMPLES,
    bleu,
    counter,
    half_width,
    p_value,
    resampled,
)

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]


def corpus(right: float, seed: int, count: int = 60) -> tuple[list[str], list[str]]:
    """Hypotheses with so many right words, some words short, and references."""
    draw = np.random.default_rng(seed)
    references = [" ".join(draw.choice(WORDS, size=draw.integers(3, 12))) for _ in range(count)]
    noise = np.random.default_rng(seed + 1)
    hypotheses = [
        " ".join(word if noise.random() < right else "x" for word in line.split()[: 4 + place % 9])
        for place, line in enumerate(references)
    ]
    return hypotheses, references


@pytest.mark.parametrize("right", [0.0, 0.3, 0.9, 1.0])
def test_bleu_of_sums_is_that_of_sacrebleu(right: float) -> None:
    hypotheses, references = corpus(right, seed=3)
    found = counter(references)(hypotheses)
    draw = np.random.default_rng(0)
    for size in (1, 2, 5, 60):  # of a few sentences: orders without a match, or without n-grams
        for _ in range(20):
            chosen = draw.integers(60, size=size)
            expected = BLEU().corpus_score(
                [hypotheses[each] for each in chosen], [[references[each] for each in chosen]]
            )
            assert bleu(found[chosen].sum(axis=0)) == pytest.approx(expected.score, abs=1e-9)


def test_with_one_seed_it_is_the_usual_bootstrap_over_sentences() -> None:
    hypotheses, references = corpus(0.7, seed=3)
    (samples,) = resampled([[counter(references)(hypotheses)]], [1])
    expected = BLEU().corpus_score(hypotheses, [references], n_bootstrap=2000)
    assert samples.shape == (RESAMPLES,)
    assert samples.mean() == pytest.approx(expected._mean, abs=0.3)
    assert half_width(samples) == pytest.approx(expected._ci, rel=0.08)


def test_seeds_are_drawn_one_fewer_and_each_system_by_itself() -> None:
    """Sentences that are all alike leave only the seeds: BLEU 0, b or 100, two of them drawn."""
    line, half = "a b c d e f", "a b c d x y"
    references = [line] * 4
    seeds = [counter(references)([each] * 4) for each in ("x", half, line)]
    b = BLEU().corpus_score([half] * 4, [references]).score
    first, again, other = resampled([seeds, seeds, seeds], [5, 5, 6])
    values, counts = np.unique(first.round(6), return_counts=True)
    expected = {0: 1, b / 2: 2, b: 1, 50: 2, (100 + b) / 2: 2, 100: 1}  # of the nine pairs
    assert values == pytest.approx(sorted(expected))
    for value, count in zip(values, counts, strict=True):
        share = next(each for key, each in expected.items() if abs(key - value) < 1e-5) / 9
        assert count / RESAMPLES == pytest.approx(share, abs=0.015)
    # The variance is that of a mean of three, as estimated without bias.
    assert first.var() == pytest.approx(np.var([0, b, 100], ddof=1) / 3, rel=0.05)
    assert np.array_equal(first, again)
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.05


def test_the_sentences_of_a_resample_are_those_of_every_system() -> None:
    hypotheses, references = corpus(0.7, seed=3)
    same = counter(references)(hypotheses)
    first, second = resampled([[same], [same, same]], [1, 2])
    assert np.allclose(first, second)


def test_a_p_value_by_hand() -> None:
    """Mean 3; 0, 0 and 9 are as far from it as 3, the last two are not."""
    differences = np.array([0.0, 0, 9, 3, 3])
    assert p_value(differences, 3.0) == pytest.approx((3 + 1) / (5 + 1))
    assert p_value(-differences, 3.0) == p_value(differences, -3.0) == p_value(differences, 3.0)
