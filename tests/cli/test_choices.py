"""Words that stand twice, because those who own them load torch or fairseq, are the same words."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from diet_mt.bench import benchmark, encoder_cost
from diet_mt.cli import _training, bench_encoder, bench_speed, figures, leaderboard
from diet_mt.evaluation import records
from diet_mt.figures import draw
from diet_mt.leaderboard import views
from diet_mt.models import _architectures
from diet_mt.positions import SEGMENT_ENCODINGS

TWICE = {
    "bench encoder --shapes": (bench_encoder.SHAPES, encoder_cost.SHAPES),
    "bench encoder --measures": (bench_encoder.MEASURES, encoder_cost.MEASURES),
    "bench speed --measures": (bench_speed.MEASURES, benchmark.MEASURES),
    "figures --only": (figures.FIGURES, draw.FIGURES),
    "leaderboard --picture": (leaderboard.PICTURES, ("intervals", *views.VIEWS)),
    "pretrain --segments": (_training.SEGMENTS, SEGMENT_ENCODINGS),
    "sizes in rows": (records.SIZES, {**_architectures.SIZES, **_architectures.ROBERTA_SIZES}),
}


@pytest.mark.parametrize(("here", "there"), TWICE.values(), ids=TWICE)
def test_choices_are_those_of_their_owner(here: Collection[str], there: Collection[str]) -> None:
    assert sorted(here) == sorted(there)
