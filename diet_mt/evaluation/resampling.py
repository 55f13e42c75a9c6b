"""Bootstrap of BLEU over the sentences of a test set and over the seeds of each system.

One resample draws N of the N sentences with replacement, the same ones for every system and seed
(Koehn 2004), and of each system with n seeds n - 1 of them with replacement, for each system by
itself: seed 1 of one system has nothing in common with seed 1 of another. What it gives for a
system is the mean of the corpus BLEU of the seeds drawn. n - 1, since the mean of n draws varies
less than a mean of n seeds does, by the factor (n - 1) / n (Rao and Wu 1988, section 2). A system
with one seed is that seed in every resample, and then only the sentences vary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from .bleu import SEED

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
    # SacreBLEU has no public way to what its own tests are made of.
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
    for each system a number that its seeds are drawn by, whatever others there are.
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
    scores = np.concatenate(blocks)  # (RESAMPLES, R)
    found, first = [], 0
    for seeds, stream in zip(systems, streams, strict=True):
        count = len(seeds)
        draws = max(1, count - 1)
        shares = np.random.default_rng([int(SEED), stream]).multinomial(
            draws, [1 / count] * count, size=RESAMPLES
        )
        found.append((scores[:, first : first + count] * shares).sum(axis=1) / draws)
        first += count
    return np.array(found)


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
