"""Buckets by hand, scores as SacreBLEU gives them of the same sentences, intervals by formula."""

from __future__ import annotations

import math
from random import Random

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU

from diet_mt.evaluation.lengths import (
    Bucket,
    buckets,
    difference,
    frequencies,
    part_of,
    parts_of,
    rare_words,
    share_known,
    tenths,
)
from diet_mt.evaluation.scores import counter

WORDS = ["der", "Hund", "die", "Katze", "sieht", "alt", ",", "schnell"]


def made_up(sentences: int = 60) -> tuple[list[str], list[str], list[list[str]]]:
    """Sources of 1 to 12 words, references, and the hypotheses of two seeds."""
    rng = Random(3)
    sources = [" ".join(rng.choices(WORDS, k=rng.randint(1, 12))) for _ in range(sentences)]
    references = [f"{line} {rng.choice(WORDS)} ." for line in sources]

    def noisy() -> list[str]:
        return [
            " ".join(word for word in line.split() if rng.random() < 0.9) or "."
            for line in references
        ]

    return sources, references, [noisy(), noisy()]


def test_scores_are_those_of_the_sentences_alone() -> None:
    sources, references, seeds = made_up()
    parts = parts_of([len(line.split()) for line in sources], least=9)
    assert [len(part.members) for part in parts] == [len({*part.members}) for part in parts]
    assert {n for part in parts for n in part.members} == {*range(60)}
    for part, bucket in zip(parts, buckets(sources, seeds, references, parts), strict=True):
        refs = [[references[n] for n in part.members]]
        own = [[seed[n] for n in part.members] for seed in seeds]
        bleu = [sacrebleu.corpus_bleu(lines, refs) for lines in own]
        chrf = [sacrebleu.corpus_chrf(lines, refs).score for lines in own]
        assert bucket.bleu.value == pytest.approx(sum(each.score for each in bleu) / 2)
        assert bucket.chrf.value == pytest.approx(sum(chrf) / 2)
        ratios = [each.sys_len / each.ref_len for each in bleu]
        assert bucket.ratio.value == pytest.approx(sum(ratios) / 2)
        for each in (bucket.bleu, bucket.chrf, bucket.ratio):
            assert each.low < each.value < each.high


def test_buckets_by_hand() -> None:
    """Merged until they are large enough; or so many of about as many sentences."""
    lengths = [1] * 3 + [6] * 2 + [11] * 4 + [12] * 3 + [30]
    names = {part.name: len(part.members) for part in parts_of(lengths, width=5, least=4)}
    assert names == {"1–6": 5, "11–30": 8}
    names = {part.name: len(part.members) for part in parts_of(lengths, width=5, least=1)}
    assert names == {"1": 3, "6": 2, "11–12": 7, "30": 1}
    assert [part.name for part in parts_of(lengths, least=100)] == ["1–30"]
    parts = parts_of([9, 1, 2, 8, 3, 7, 4, 6], count=4, least=1)
    assert [part.name for part in parts] == ["1–2", "3–4", "6–7", "8–9"]
    assert (parts[0].members, parts[0].mean_length) == ((1, 2), 1.5)
    # Sentences of one length stay together.
    assert [part.name for part in parts_of([5] * 7 + [6], count=2, least=1)] == ["5", "6"]
    usual = buckets(["a b"] * 120 + ["a b c d e f"] * 120, [["x y z v"] * 240], ["x y z v"] * 240)
    names = {each.part.name: len(each.part.members) for each in usual}
    assert names == {"2": 120, "6": 120}
    assert all(each.bleu.value == pytest.approx(100) for each in usual)


def test_an_interval_by_the_formula_of_a_share() -> None:
    """Of n sentences a share p: p ± 1.96 sqrt(p (1 - p) / n); 1,000 resamples come within 15 %."""
    hypotheses = ["a"] * 280 + ["b"] * 120
    (share,) = rare_words([hypotheses], ["a"] * 400, frequencies(["a"])).values()
    assert share.value == pytest.approx(70)
    assert share.half_width == pytest.approx(196 * math.sqrt(0.7 * 0.3 / 400), rel=0.15)


def test_a_seed_more_moves_the_value_and_not_the_draws() -> None:
    """The same hypotheses twice are no more evidence than once."""
    sources, references, (one, _) = made_up()

    def alone(*seeds: list[str]) -> Bucket:
        part = part_of(range(60), [len(line.split()) for line in sources])
        return buckets(sources, seeds, references, [part])[0]

    assert alone(one, one) == alone(one)
    assert alone(one, references).bleu.value == pytest.approx((alone(one).bleu.value + 100) / 2)


def test_a_difference_is_that_of_means_over_the_same_resamples() -> None:
    """Compared with 300 draws of its own, each scored by SacreBLEU."""
    _, references, (one, two) = made_up(80)
    three = [" ".join(line.split()[:-1]) for line in references]
    of_seed, rng, metric = counter(references), Random(4), BLEU()
    gain = difference([of_seed(one), of_seed(two)], [of_seed(three)])

    def gap(rows: list[int]) -> float:
        refs = [[references[n] for n in rows]]
        texts = ([lines[n] for n in rows] for lines in (one, two, three))
        first, second, other = (metric.corpus_score(text, refs).score for text in texts)
        return (first + second) / 2 - other

    assert gain.value == pytest.approx(gap([*range(80)]))
    samples = sorted(gap(rng.choices(range(80), k=80)) for _ in range(300))
    assert gain.half_width == pytest.approx((samples[-8] - samples[7]) / 2, rel=0.15)
    assert difference([of_seed(one)], [of_seed(one)]).half_width == 0


def test_tenths_by_hand() -> None:
    """Ten words, the fourth wrong, the last two in each other's place: one of them matches."""
    shares = [each.value for each in tenths([["a b c x e f g h j i"]], ["a b c d e f g h i j"])]
    assert shares == [100, 100, 100, 0, 100, 100, 100, 100, 100, 0]
    # Two words are in the middle of either half; of twenty, each tenth has two.
    short = [each.value for each in tenths([["a x"]], ["a b"])]
    assert {n: value for n, value in enumerate(short) if not math.isnan(value)} == {2: 100, 7: 0}
    long = " ".join(map(str, range(20)))
    shares = [each.value for each in tenths([[long.replace("0 ", "", 1)]], [long])]
    assert shares == [50] + [100] * 9


def test_rare_words_by_hand() -> None:
    frequency = frequencies(["a a a b"] * 40 + ["c"])
    assert share_known(["b a a c e"], frequency) == 0.8
    recall = rare_words([["a b b d"]], ["b a a c e"], frequency)
    assert {name: each.value for name, each in recall.items()} == {
        "0": 0,  # e
        "1–4": 0,  # c
        "20–99": 100,  # b, 40 times
        "100–999": 50,  # a, 120 times: one of two
    }
