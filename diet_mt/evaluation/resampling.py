"""Bootstrap of BLEU over the sentences of a test set, with the chance of the seeds of each system.

One resample draws N of the N sentences with replacement, the same ones for every system and seed
(Koehn 2004), and takes of each system the mean BLEU of its n seeds. To that it adds the chance of
the seeds: a number of the normal distribution with variance v / n, for each system by itself, since
seed 1 of one system has nothing in common with seed 1 of another. v is the variance between seeds,
pooled over all systems of the table that have several (an analysis of variance with one factor), so
that systems with one seed have their share of it, too. Two things are known of v:

- It is an estimate. Of d degrees of freedom (the seeds less the systems, of those with several) it
  is d s^2 / x, x drawn from chi-square(d) for each resample: what turns a normal distribution into
  Student's t.
- Seeds also differ in which sentences they have right. The resampled sentences cover that already,
  so its part, the variance of the seeds of one system over the resamples, is taken off.

Where no system has a second seed, v is unknown, taken as 0, and only the sentences vary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from .scores import SEED

RESAMPLES = 10_000
ORDERS = 4  # n-grams up to this
_BLOCK = 500  # resamples at a time: as many counts as there are sentences for each
_SHARE = 0.95  # of an interval

Floats = NDArray[np.float64]


def counter(references: Sequence[str]) -> Callable[[Sequence[str]], Floats]:
    """Of N hypotheses of these references the statistics (N, 10): words, words of the reference,
    then matches and n-grams by order. The references are read once.
    """
    metric = BLEU(references=[list(references)])
    # SacreBLEU has no public function for the statistics of its own tests.
    return lambda lines: np.array(metric._extract_corpus_statistics(lines, None), dtype=np.float64)


def bleu(sums: Floats) -> Floats:
    """BLEU, 0 to 100, of sums of such statistics (..., 10): SacreBLEU's, smoothing ``exp``."""
    words, reference_words = sums[..., 0], sums[..., 1]
    matches, total = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    # An order without a match counts as half of one, the next such as a quarter, and so on.
    missing = matches == 0
    halves = 0.5 ** np.cumsum(missing, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.log(np.where(missing, halves, matches) / total)
        brevity = np.minimum(0, 1 - reference_words / words)
        scores = 100 * np.exp(logarithms.mean(axis=-1) + brevity)
    defined = (total > 0).all(axis=-1) & (matches > 0).any(axis=-1)
    return np.where(defined, scores, 0.0)


def resampled(systems: Sequence[Sequence[Floats]], streams: Sequence[int]) -> Floats:
    """(systems, RESAMPLES): mean BLEU over the seeds of each system, resample by resample.

    ``systems``: statistics of each seed of each system, all of the same N sentences; ``streams``:
    for each system a number that the chance of its seeds is drawn by, whatever others there are.
    """
    every = np.concatenate([each for seeds in systems for each in seeds], axis=1)  # (N, R * 10)
    count = len(every)
    sentences = np.random.default_rng(int(SEED))
    blocks = []
    for _ in range(RESAMPLES // _BLOCK):
        drawn = sentences.integers(count, size=(_BLOCK, count)) + count * np.arange(_BLOCK)[:, None]
        times = np.bincount(drawn.ravel(), minlength=_BLOCK * count).reshape(_BLOCK, count)
        # Whole numbers far below 2^24, so float32 adds them without an error.
        sums = times.astype(np.float32) @ every.astype(np.float32)
        blocks.append(bleu(sums.astype(np.float64).reshape(_BLOCK, -1, 2 + 2 * ORDERS)))
    ends = np.cumsum([len(seeds) for seeds in systems])[:-1]
    scores = np.split(np.concatenate(blocks).T, ends)  # of each system (n, RESAMPLES)
    whole = [np.array([bleu(each.sum(axis=0)) for each in seeds]) for seeds in systems]
    spread = np.sqrt(between_seeds(whole, scores))
    return np.array(
        [
            some.mean(axis=0) + spread / np.sqrt(len(some)) * _normal(stream)
            for some, stream in zip(scores, streams, strict=True)
        ]
    )


def between_seeds(whole: Sequence[Floats], scores: Sequence[Floats]) -> Floats:
    """(RESAMPLES,): draws of the variance of BLEU between the seeds of a system, beyond what the
    choice of the sentences explains.

    ``whole``: of each system the BLEU (n,) of its seeds; ``scores``: the same resampled, (n, R).
    """
    freedom = sum(len(seeds) - 1 for seeds in whole)
    if freedom == 0:
        return np.zeros(RESAMPLES)
    squares = sum(float(((seeds - seeds.mean()) ** 2).sum()) for seeds in whole)
    explained = sum(float((some - some.mean(axis=0)).var(axis=1).sum()) for some in scores)
    drawn = np.random.default_rng(int(SEED)).chisquare(freedom, size=RESAMPLES)
    return np.maximum(squares / drawn - explained / freedom, 0)


def _normal(stream: int) -> Floats:
    return np.random.default_rng([int(SEED), stream]).standard_normal(RESAMPLES)


def half_width(samples: Floats) -> float:
    """Half of the interval that holds 95 % of the resamples, by their percentiles."""
    low, high = np.quantile(samples, [(1 - _SHARE) / 2, (1 + _SHARE) / 2])
    return float(high - low) / 2


def p_value(differences: Floats, difference: float) -> float:
    """How often systems that are equal would differ by as much: two-sided.

    Resampled differences that lie at least ``difference`` away from their mean, to either side,
    and one more, over all and one more (Efron and Tibshirani 1993, chapter 16). SacreBLEU's own
    test counts one side alone, so its p-values are about half of these.
    """
    far = np.abs(differences - differences.mean()) >= abs(difference)
    return float(far.sum() + 1) / (len(differences) + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """The same p-values, in their order, corrected for their number (Holm 1979): where all systems
    are equal, one of these is at most 0.05 in at most 5 % of comparisons of all.
    """
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected = [1.0] * len(p_values)
    reached = 0.0
    for rank, place in enumerate(ranked):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = reached
    return corrected
