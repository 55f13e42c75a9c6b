"""The bootstrap over sentences and seeds, against SacreBLEU and against cases by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from diet_mt.evaluation.resampling import (
    RESAMPLES,
    between_seeds,
    bleu,
    counter,
    half_width,
    holm,
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


def test_the_chance_of_seeds_is_pooled_and_that_of_each_system_its_own() -> None:
    """Sentences that are all alike leave only the seeds: BLEU 0, b or 100."""
    line, half = "a b c d e f", "a b c d x y"
    references = [line] * 4
    seeds = [counter(references)([each] * 4) for each in ("x", half, line)]
    b = BLEU().corpus_score([half] * 4, [references]).score
    systems, streams = [seeds] * 4 + [seeds[1:2]], [5, 5, 6, 7, 8]
    first, again, other, _, single = resampled(systems, streams)
    # Of d degrees of freedom, d / chi-square is d / (d - 2) on average.
    between = np.var([0, b, 100], ddof=1) * 8 / 6
    assert first.mean() == pytest.approx((b + 100) / 3, abs=1)
    assert first.var() == pytest.approx(between / 3, rel=0.1)
    assert single.mean() == pytest.approx(b, abs=2)
    assert single.var() == pytest.approx(between, rel=0.1)
    assert np.array_equal(first, again)
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.05


def test_what_sentences_explain_is_not_counted_again() -> None:
    """Two seeds 2 BLEU apart, whose difference varies by as much over the resamples: squares 2,
    explained 2. 2 / chi-square(1) - 2 is above 0 where chi-square is below 1: 68.3 %.
    """
    turns = np.where(np.arange(RESAMPLES) % 2, 1.0, -1.0)
    found = between_seeds([np.array([30.0, 32.0])], [np.array([turns, -turns])])
    assert (found > 0).mean() == pytest.approx(0.683, abs=0.015)
    assert found.min() == 0
    alone = between_seeds([np.array([30.0])], [turns[None]])
    assert np.array_equal(alone, np.zeros(RESAMPLES))


@pytest.mark.parametrize("pair", [(1, 1), (1, 2), (2, 2)])
def test_equal_systems_are_told_apart_as_often_as_p_says(pair: tuple[int, int]) -> None:
    """Of 600 tables with six systems that differ by their seeds alone, 5 % ± 0.9 have p ≤ 0.05."""
    draw = np.random.default_rng(1)
    alarms = 0
    for _ in range(600):
        whole = [draw.normal(0, 0.6, size=n) for n in (*pair, 2, 2, 2, 1)]
        scores = [np.repeat(seeds[:, None], RESAMPLES, axis=1) for seeds in whole]
        v = between_seeds(whole, scores) * sum(1 / n for n in pair)
        differences = np.sqrt(v) * draw.standard_normal(RESAMPLES)
        alarms += p_value(differences, whole[0].mean() - whole[1].mean()) <= 0.05
    assert alarms / 600 == pytest.approx(0.05, abs=0.027)


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


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # never less than a smaller one's
        ([0.9, 0.02, 0.8], [1.0, 0.06, 1.0]),
    ],
)
def test_p_values_are_corrected_for_their_number(
    p_values: list[float], corrected: list[float]
) -> None:
    assert holm(p_values) == pytest.approx(corrected)
