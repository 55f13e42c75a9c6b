"""Words that stand twice, because those who own them load torch or fairseq, are the same words."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from diet_mt.cli import _training, figures, leaderboard
from diet_mt.evaluation import records
from diet_mt.figures import draw
from diet_mt.models import _architectures
from diet_mt.positions import SEGMENT_ENCODINGS
from diet_mt.report import pictures

TWICE = {
    "figures --only": (figures.FIGURES, draw.FIGURES),
    "leaderboard --picture": (leaderboard.PICTURES, pictures.PICTURES),
    "pretrain --segments": (_training.SEGMENTS, SEGMENT_ENCODINGS),
    "sizes in rows": (records.SIZES, {**_architectures.SIZES, **_architectures.ROBERTA_SIZES}),
}


@pytest.mark.parametrize(("here", "there"), TWICE.values(), ids=TWICE)
def test_choices_are_those_of_their_owner(here: Collection[str], there: Collection[str]) -> None:
    assert sorted(here) == sorted(there)
