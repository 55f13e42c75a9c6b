"""Scores of translations: BLEU, chrF, role accuracy, and the bootstrap of BLEU.

One resample draws N of the N sentences with replacement, the same ones for every system and seed
(Koehn 2004), and takes the mean BLEU of the n seeds of each system. For the seeds it adds a normal
deviate of variance v / n, independent for each system but the same for decodings of the same
trainings. v is the variance between seeds, pooled over all systems of the table with several seeds
(one-way analysis of variance); systems with one seed share it, and without a second seed of any
system it is 0. Two corrections apply to v:

- v is an estimate s^2 with d degrees of freedom, the seeds less the systems with several. Each
  resample draws v = d s^2 / x, x from chi-square(d), which turns the normal distribution into
  Student's t.
- Resampling sentences explains a part of the variance between seeds; that part is subtracted. It is
  the variance over the resamples of a seed's deviation from the mean of its system.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF

from ..corpora.parallel import twins_of
from ..system.errors import UserError
from ..system.files import text_lines

RESAMPLES = 10_000
SEED = 12345  # SacreBLEU's default
ORDERS = 4  # n-grams up to this
_BLOCK = 500  # resamples at a time: as many counts as there are sentences for each

Floats = NDArray[np.float64]


def scores(hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    """Corpus BLEU (13a) and chrF as in ``records.Result``. Raises UserError for unequal numbers."""
    if len(hypotheses) != len(references):
        raise UserError(f"{len(hypotheses)} hypotheses but {len(references)} references")
    metrics = BLEU(), CHRF()
    bleu, chrf = (metric.corpus_score(hypotheses, [references]) for metric in metrics)
    signatures = [str(metric.get_signature()) for metric in metrics]
    ratio = bleu.sys_len / bleu.ref_len if bleu.ref_len else 0
    return {
        "sentences": len(hypotheses),
        "bleu": round(bleu.score, 4),
        "bleu_signature": signatures[0],
        "chrf": round(chrf.score, 4),
        "chrf_signature": signatures[1],
        "length_ratio": round(ratio, 4),
        "precisions": "/".join(f"{each:.2f}" for each in bleu.precisions),
    }


def without_version(signature: str) -> str:
    """A signature without SacreBLEU's version."""
    return re.sub(r"\|version:[^|]*", "", signature)


def role_accuracy(
    hypotheses: Sequence[str], references: Sequence[str], twins: Sequence[str]
) -> float | None:
    """Percentage of translations closer to their reference than to that of their twin, the same
    sentence with subject and object swapped; None without twins (empty lines).

    Closeness: words shared in the same order (the ratio of Python's difflib). A tie counts half.
    """
    points = [
        _point(hypothesis, reference, twin)
        for hypothesis, reference, twin in zip(hypotheses, references, twins, strict=True)
        if twin
    ]
    return round(100 * sum(points) / len(points), 4) if points else None


def _point(hypothesis: str, reference: str, twin: str) -> float:
    own, other = (
        SequenceMatcher(None, each.split(), hypothesis.split(), autojunk=False).ratio()
        for each in (reference, twin)
    )
    return 0.5 if own == other else float(own > other)


def roles_of(hypotheses: Sequence[str], lines: Sequence[str], references: Path) -> float | None:
    """Role accuracy; None: no twins. ``lines``: of ``references``. Raises UserError for others."""
    file = twins_of(references)
    if not file.is_file():
        return None
    twins = [line for _, line in text_lines(file)]
    if len(twins) != len(lines):
        raise UserError(f"{file}: {len(twins)} lines, but {references} has {len(lines)}")
    return role_accuracy(hypotheses, lines, twins)


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


def resampled(
    systems: Sequence[Sequence[Floats]], streams: Sequence[int]
) -> tuple[Floats, Floats, tuple[float, float]]:
    """Mean BLEU over the seeds of each system, resample by resample (systems, RESAMPLES), over
    sentences and seeds; the same over sentences alone; and the variances of ``between_seeds``.

    ``systems``: statistics of each seed of each system, all of the same N sentences; ``streams``:
    seed of the random draws of each system, so that they do not depend on other systems; equal for
    systems of the same trainings.
    """
    # Whole numbers far below 2^24, so float32 adds them without an error.
    every = np.concatenate([each for seeds in systems for each in seeds], axis=1).astype(np.float32)
    count = len(every)
    sentences = np.random.default_rng(SEED)
    blocks = []
    for _ in range(RESAMPLES // _BLOCK):
        drawn = sentences.integers(count, size=(_BLOCK, count)) + count * np.arange(_BLOCK)[:, None]
        times = np.bincount(drawn.ravel(), minlength=_BLOCK * count).reshape(_BLOCK, count)
        sums = times.astype(np.float32) @ every  # (_BLOCK, R * 10)
        blocks.append(bleu(sums.astype(np.float64).reshape(_BLOCK, -1, 2 + 2 * ORDERS)))
    ends = np.cumsum([len(seeds) for seeds in systems])[:-1]
    scores = np.split(np.concatenate(blocks).T, ends)  # of each system (n, RESAMPLES)
    whole = [np.array([bleu(each.sum(axis=0)) for each in seeds]) for seeds in systems]
    trained = [streams.index(each) for each in dict.fromkeys(streams)]
    v, total, explained = between_seeds([whole[n] for n in trained], [scores[n] for n in trained])
    spread, means = np.sqrt(v), np.array([own.mean(axis=0) for own in scores])
    draws = [np.random.default_rng([SEED, stream]) for stream in streams]
    deviates = [
        spread / np.sqrt(len(own)) * draw.standard_normal(RESAMPLES)
        for own, draw in zip(scores, draws, strict=True)
    ]
    return means + np.array(deviates), means, (total, explained)


def between_seeds(whole: Sequence[Floats], scores: Sequence[Floats]) -> tuple[Floats, float, float]:
    """Draws (RESAMPLES,) of the variance of BLEU between the seeds of a system, beyond what the
    choice of the sentences explains; estimates of the whole variance, and of what is explained.

    ``whole``: of each system the BLEU (n,) of its seeds; ``scores``: the same resampled, (n, R).
    """
    freedom = sum(len(seeds) - 1 for seeds in whole)
    if freedom == 0:
        return np.zeros(RESAMPLES), 0.0, 0.0
    squares = sum(float(((seeds - seeds.mean()) ** 2).sum()) for seeds in whole)
    explained = sum(float((own - own.mean(axis=0)).var(axis=1).sum()) for own in scores)
    drawn = np.random.default_rng(SEED).chisquare(freedom, size=RESAMPLES)
    draws = np.maximum(squares / drawn - explained / freedom, 0)
    return draws, squares / freedom, explained / freedom


def half_width(samples: Floats) -> float:
    """Half of the interval that contains 95 % of the resamples, by their percentiles."""
    low, high = np.quantile(samples, [0.025, 0.975])
    return float(high - low) / 2


def p_value(differences: Floats, difference: float) -> float:
    """Two-sided p-value: how often equal systems would differ by as much (Efron and Tibshirani
    1993, chapter 16). SacreBLEU's one-sided p-values are about half of these.
    """
    far = np.abs(differences - differences.mean()) >= abs(difference)
    return float(far.sum() + 1) / (len(differences) + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, in their order, corrected for their number (Holm 1979)."""
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected = [1.0] * len(p_values)
    reached = 0.0
    for rank, place in enumerate(ranked):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = reached
    return corrected
