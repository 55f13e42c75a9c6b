"""What pictures say of chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diet_mt.evaluation.groups import group
from diet_mt.evaluation.lengths import part_of
from diet_mt.evaluation.records import read_results
from diet_mt.evaluation.resampling import bleu
from diet_mt.evaluation.sentences import read_sentences
from diet_mt.leaderboard.views import _gap


def test_an_interval_by_length_is_that_of_resamples(said: Path) -> None:
    file = said / "toy.en-de.jsonl"
    kept = read_sentences([file])
    (found,) = group(read_results(file))
    lines = {line.system: line for line in found.lines}
    (texts,) = kept.texts.values()
    count = len(texts.reference_lengths)
    times = np.random.default_rng(1).multinomial(count, np.full(count, 1 / count), size=2000)
    for first, second in (("shaw", "none"), ("diet_rel", "sinusoidal")):
        samples = []
        for name in (first, second):
            scores = []
            for result in lines[name].results:
                counts = kept.counts[result.hypotheses_sha256, result.references_sha256]
                totals = [np.maximum(np.array(counts.lengths) - order, 0) for order in range(4)]
                columns = [counts.lengths, texts.reference_lengths, *counts.matches, *totals]
                scores.append(bleu((times @ np.array(columns).T).astype(float)))
            samples.append(np.mean(scores, axis=0))
        low, high = np.quantile(samples[0] - samples[1], (0.025, 0.975))
        part = part_of(range(count), texts.source_lengths)
        gap, half = _gap(lines[first], lines[second], part, kept)
        assert gap == pytest.approx(lines[first].bleu - lines[second].bleu, abs=0.01)
        assert half == pytest.approx((high - low) / 2, rel=0.25)
