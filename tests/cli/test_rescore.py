"""Rows are scored again as they were scored: with intervals, or before there were any."""

from __future__ import annotations

import pytest

from diet_mt.cli.rescore import differences
from diet_mt.cli.score import interval, score
from diet_mt.records import Result

from .rows import row

HYPOTHESES = ["a b c d e", "f g h i j x"]
REFERENCES = ["a b c d e", "f g h i j k"]


@pytest.fixture(scope="module")
def old() -> Result:
    """Without an interval."""
    return row(**vars(score(HYPOTHESES, REFERENCES)))


@pytest.fixture(scope="module")
def new(old: Result) -> Result:
    mean, half = interval(HYPOTHESES, REFERENCES)
    return row(**{**vars(old), "bleu_mean": mean, "bleu_ci": half})


def test_both_kinds_score_again(old: Result, new: Result) -> None:
    assert old.bleu_ci == 0 < new.bleu_ci
    assert differences(old, HYPOTHESES, REFERENCES) == []
    assert differences(new, HYPOTHESES, REFERENCES) == []


@pytest.mark.parametrize("name", ["bleu", "chrf", "bleu_mean", "bleu_ci"])
def test_a_number_that_differs_is_named(new: Result, name: str) -> None:
    changed = row(**{**vars(new), name: 1.5})
    (found,) = differences(changed, HYPOTHESES, REFERENCES)
    assert found.startswith(f"{name} 1.5 stored, ")


def test_another_version_of_sacrebleu_is_no_difference(new: Result) -> None:
    version = new.bleu_signature.rpartition("version:")[2]
    changed = new.bleu_signature.replace(version, "1.0")
    assert (
        differences(row(**{**vars(new), "bleu_signature": changed}), HYPOTHESES, REFERENCES) == []
    )
    other = new.bleu_signature.replace("tok:13a", "tok:intl")
    (found,) = differences(row(**{**vars(new), "bleu_signature": other}), HYPOTHESES, REFERENCES)
    assert found.startswith("bleu_signature ")
