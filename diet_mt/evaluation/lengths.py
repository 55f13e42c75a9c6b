"""Scores by source length, and word accuracy by position and by frequency.

Scores are SacreBLEU's, of some sentences alone; intervals hold 95 % of 1,000 resamples of these
sentences, always the same. A system with several seeds has their mean, in each resample, too;
intervals do not cover the choice of seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from sacrebleu.metrics import CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from .scores import INTERVAL_RESAMPLES, ORDERS, SEED, Floats, bleu, bounds, counter

LEAST = 100  # sentences in a bucket
WIDTH = 5  # lengths in a bucket
TENTHS = 10
# Least frequencies in training of the classes of words.
CLASSES = (0, 1, 5, 20, 100, 1000)


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Part:
    """Sentences that are scored together: ``members`` are their numbers, from 0."""

    name: str
    members: tuple[int, ...]
    mean_length: float  # of the sources


@dataclass(frozen=True)
class Bucket:
    """Scores of one part. BLEU and chrF from 0 to 100; ``ratio``: tokens of the hypotheses for
    each token of the references, as BLEU counts them; ``statistics``: of each seed, (sentences,
    10), as ``scores.counter`` has them.
    """

    part: Part
    statistics: Sequence[Floats] = field(compare=False, repr=False)
    bleu: Estimate
    chrf: Estimate
    ratio: Estimate


def parts_of(
    lengths: Sequence[int], *, width: int = WIDTH, count: int = 0, least: int = LEAST
) -> list[Part]:
    """Sentences by the lengths of their sources, the shortest first.

    Buckets of ``width`` lengths: 1 to 5, 6 to 10, ...; or with ``count`` so many, each of about as
    many sentences. One that has less than ``least`` sentences takes in the next, the last of all
    the one before it.
    """
    order = sorted(range(len(lengths)), key=lambda number: lengths[number])
    ends = [lengths[order[len(order) * k // count - 1]] for k in range(1, count)]

    def bucket(number: int) -> int:
        length = lengths[number]
        return sum(length > end for end in ends) if count else (length - 1) // width

    merged: list[list[int]] = []
    for _, members in groupby(order, key=bucket):
        if merged and len(merged[-1]) < least:
            merged[-1] += members
        else:
            merged.append(list(members))
    if len(merged) > 1 and len(merged[-1]) < least:
        merged[-2:] = [merged[-2] + merged[-1]]
    return [part_of(members, lengths) for members in merged]


def part_of(members: Sequence[int], lengths: Sequence[int], name: str = "") -> Part:
    """``name``: by default the lengths of the sources, from the least to the greatest."""
    own = [lengths[number] for number in members]
    least, most = min(own), max(own)
    usual = f"{least}" if least == most else f"{least}–{most}"
    return Part(name or usual, tuple(sorted(members)), sum(own) / len(own))


@lru_cache(maxsize=1)
def _metrics(references: tuple[str, ...]) -> tuple[Any, Callable[[Sequence[str]], Floats]]:
    """chrF, and the counter of BLEU, which read these references once for all systems."""
    return CHRF(references=[list(references)]), counter(references)


def buckets(
    sources: Sequence[str],
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[str],
    parts: Sequence[Part] = (),
) -> list[Bucket]:
    """Scores by the length of the source, in what spaces separate.

    ``hypotheses``: of each seed; ``parts``: of the sentences; none: the usual ones of ``parts_of``.
    """
    parts = parts or parts_of([len(line.split()) for line in sources])
    metric, count = _metrics(tuple(references))
    of_chrf = [np.array(metric._extract_corpus_statistics(seed, None)) for seed in hypotheses]
    of_bleu = [*map(count, hypotheses)]

    def chrf(sums: Any) -> Any:
        return np.array([metric._compute_score_from_stats(row).score for row in sums.tolist()])

    made = []
    for part in parts:
        rows = list(part.members)
        own = [stats[rows] for stats in of_bleu]
        made.append(
            Bucket(
                part,
                own,
                bleu=_estimate(own, bleu),
                chrf=_estimate([stats[rows] for stats in of_chrf], chrf),
                ratio=_shares([stats[:, :1] for stats in own], [stats[:, 1:2] for stats in own])[0],
            )
        )
    return made


def difference(first: Sequence[Floats], second: Sequence[Floats]) -> Estimate:
    """BLEU of one system above another's, of statistics (sentences, 10) for each seed of both."""

    def gap(sums: Floats) -> Floats:
        scores = bleu(sums.reshape(len(sums), -1, 2 + 2 * ORDERS))  # (n, seeds)
        own, other = scores[:, : len(first)], scores[:, len(first) :]
        return np.asarray(own.mean(axis=1) - other.mean(axis=1))

    return _estimate([np.concatenate([*first, *second], axis=1)], gap)


def resampled_bleu(seeds: Sequence[Floats]) -> tuple[float, Floats]:
    """BLEU, mean of the seeds, and the same of 1,000 resamples of the sentences; ``seeds``:
    statistics (sentences, 10) of each.
    """
    return _resampled(seeds, bleu)


def tenths(hypotheses: Sequence[Sequence[str]], references: Sequence[str]) -> list[Estimate]:
    """Word accuracy, 0 to 100, by tenth of the reference.

    The share of the reference's tokens (BLEU's, 13a) that the hypothesis has, too, in an alignment
    without crossings: the matching blocks of Python's difflib (Ratcliff and Obershelp: the longest
    run of equal tokens, then the same to its left and to its right), without its rule for frequent
    tokens. Token i of n, counted from 0, is of tenth floor(10 (i + 1/2) / n).
    """
    tokens = [_tokens(line) for line in references]

    def by_tenth(words: list[str], hypothesis: list[str]) -> list[int]:
        row = [0] * TENTHS
        matcher = SequenceMatcher(None, words, hypothesis, autojunk=False)
        for block in matcher.get_matching_blocks():
            for place in range(block.a, block.a + block.size):
                row[TENTHS * (2 * place + 1) // (2 * len(words))] += 1
        return row

    return _recall(tokens, hypotheses, by_tenth)


def _recall(
    references: Sequence[list[str]],
    hypotheses: Sequence[Sequence[str]],
    row: Callable[[list[str], list[str]], list[int]],
) -> list[Estimate]:
    """Percentages; ``row``: of the tokens of a reference and a hypothesis the counts (k,)."""
    every = np.array([row(words, words) for words in references])
    matched = [
        np.array([row(*pair) for pair in zip(references, map(_tokens, lines), strict=True)])
        for lines in hypotheses
    ]
    return _shares([100 * each for each in matched], [every] * len(matched))


def frequencies(text: Iterable[str]) -> Counter[str]:
    """How often each token (BLEU's, 13a) occurs in a text."""
    return Counter(token for line in text for token in _tokens(line))


def share_known(references: Iterable[str], frequency: Counter[str]) -> float:
    """Share of the tokens of the references that have a frequency."""
    known = [frequency[token] > 0 for line in references for token in _tokens(line)]
    return sum(known) / max(len(known), 1)


def rare_words(
    hypotheses: Sequence[Sequence[str]], references: Sequence[str], frequency: Counter[str]
) -> dict[str, Estimate]:
    """Recall of words, 0 to 100, by their frequency in the target side of the training text.

    Recall of reference tokens (BLEU's, 13a), with clipped counts. Empty classes are left out.
    """
    tokens = [_tokens(line) for line in references]

    def by_class(words: list[str], hypothesis: list[str]) -> list[int]:
        row = [0] * len(CLASSES)
        for token, count in (Counter(words) & Counter(hypothesis)).items():
            row[_class_of(frequency[token])] += count
        return row

    used = {_class_of(frequency[token]) for words in tokens for token in words}
    shares = _recall(tokens, hypotheses, by_class)
    return {_class_name(number): shares[number] for number in sorted(used)}


def _class_of(frequency: int) -> int:
    return sum(frequency >= least for least in CLASSES) - 1


def _class_name(number: int) -> str:
    least, *above = CLASSES[number:]
    if not above:
        return f"≥ {least:,}"
    return f"{least}" if above[0] == least + 1 else f"{least}–{above[0] - 1}"


_tokenizer = Tokenizer13a()


def _tokens(line: str) -> list[str]:
    words: list[str] = _tokenizer(line).split()
    return words


@lru_cache(maxsize=8)
def _resamples(sentences: int) -> Any:
    """How often each resample draws each sentence: (1,000, sentences)."""
    draw = np.random.default_rng(int(SEED))
    return draw.multinomial(sentences, np.full(sentences, 1 / sentences), size=INTERVAL_RESAMPLES)


def _estimate(seeds: Sequence[Any], score: Callable[[Any], Any]) -> Estimate:
    """Of a metric's statistics, (sentences, k) for each seed; ``score``: of sums of them (n, k)."""
    return _interval(*_resampled(seeds, score))


def _resampled(seeds: Sequence[Any], score: Callable[[Any], Any]) -> tuple[float, Any]:
    """The mean score of the seeds, and the same of each resample (1,000,)."""
    value = np.mean([score(stats.sum(axis=0, keepdims=True)) for stats in seeds])
    weights = _resamples(len(seeds[0]))
    return float(value), np.mean([score(weights @ stats) for stats in seeds], axis=0)


def _shares(parts: Sequence[Any], wholes: Sequence[Any]) -> list[Estimate]:
    """Of counts (sentences, k) for each seed: for each column, that of all sentences together."""
    weights, pairs = _resamples(len(wholes[0])), [*zip(parts, wholes, strict=True)]
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where there is nothing to count
        values = np.mean([part.sum(axis=0) / whole.sum(axis=0) for part, whole in pairs], axis=0)
        samples = np.mean([(weights @ part) / (weights @ whole) for part, whole in pairs], axis=0)
    return [_interval(value, samples[:, k]) for k, value in enumerate(values)]


def _interval(value: Any, samples: Any) -> Estimate:
    known = samples[~np.isnan(samples)]
    return Estimate(float(value), *(bounds(known) if known.size else (np.nan, np.nan)))
