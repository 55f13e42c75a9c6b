"""Metrics against values worked out by hand, and what happens where they are not defined."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from diet_mt.bert.metrics import check_metrics, measure
from diet_mt.errors import UserError

# 3 true positives, 1 false positive, 1 false negative, 2 true negatives.
PREDICTED = np.array([1, 1, 1, 1, 0, 0, 0])
GOLD = np.array([1, 1, 1, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("accuracy", 100 * 5 / 7),
        ("f1", 100 * 6 / 8),  # 2 tp / (2 tp + fp + fn)
        ("matthews", 100 * 5 / 12),  # (3*2 - 1*1) / sqrt(4 * 4 * 3 * 3)
    ],
)
def test_classes(name: str, expected: float) -> None:
    assert measure(name, PREDICTED, GOLD) == pytest.approx(expected, abs=1e-4)


def test_f1_is_of_class_1() -> None:
    # With the classes exchanged: 2 true positives, 1 false positive, 1 false negative.
    assert measure("f1", 1 - PREDICTED, 1 - GOLD) == pytest.approx(100 * 4 / 6, abs=1e-4)


def test_scores() -> None:
    predicted, gold = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 1.0, 4.0, 8.0])
    # Deviations -1.5 -0.5 0.5 1.5 and -1.75 -2.75 0.25 4.25: products 10.5, squares 5 and 28.75.
    assert measure("pearson", predicted, gold) == pytest.approx(
        100 * 10.5 / (5 * 28.75) ** 0.5, abs=1e-4
    )
    # Ranks 1 2 3 4 and 2 1 3 4: 1 - 6 * 2 / (4 * 15).
    assert measure("spearman", predicted, gold) == pytest.approx(80.0)


@pytest.mark.parametrize(
    ("name", "predicted", "gold", "why"),
    [
        ("matthews", [1, 1, 1], [1, 0, 1], "all predictions are the same"),
        ("pearson", [2.5, 2.5, 2.5], [1, 2, 3], "all predictions are the same"),
        ("spearman", [1, 2, 3], [4, 4, 4], "all true values are the same"),
        ("pearson", [1, float("nan"), 3], [1, 2, 3], "not finite"),
        ("accuracy", [1, float("nan"), 0], [1, 0, 0], "not finite"),
        ("f1", [0, 0], [0, 0], "class 1 is neither predicted nor true"),
    ],
)
def test_what_is_not_defined_is_0_and_said(
    name: str, predicted: list[float], gold: list[float], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert measure(name, np.array(predicted), np.array(gold)) == 0.0
    assert len(caplog.records) == 1
    assert why in caplog.text


def test_what_cannot_be_measured() -> None:
    with pytest.raises(ValueError, match="predictions of"):
        measure("accuracy", PREDICTED, GOLD[:3])
    with pytest.raises(ValueError, match="predictions of"):
        measure("accuracy", PREDICTED[:0], GOLD[:0])
    with pytest.raises(UserError, match="metric 'bleu': choose from accuracy"):
        measure("bleu", PREDICTED, GOLD)
    with pytest.raises(UserError, match="metric 'f1': for scores, choose from pearson"):
        check_metrics(["pearson", "f1"], regression=True)
    with pytest.raises(UserError, match="metric 'pearson': for classes"):
        check_metrics(["pearson"], regression=False)
