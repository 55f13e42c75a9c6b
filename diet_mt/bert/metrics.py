"""Metrics of classification and regression over a whole evaluation set, from 0 to 100.

Computed by scikit-learn and SciPy; correlations and Matthews' coefficient are from -100 to 100. An
undefined metric (predictions or labels are constant) is 0, with a warning, because comparisons with
NaN would select checkpoints silently.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from ..system.errors import UserError

logger = logging.getLogger(__name__)

# True values, predictions -> a metric of classes, numbered from 0, or of scores.
_Metric = Callable[[np.ndarray, np.ndarray], float]
_OF_CLASSES: dict[str, _Metric] = {
    "accuracy": accuracy_score,
    # Of class 1, as GLUE has it for MRPC and QQP.
    "f1": partial(f1_score, pos_label=1, average="binary", zero_division=0.0),
    "matthews": matthews_corrcoef,
}
_OF_SCORES: dict[str, _Metric] = {
    "pearson": lambda gold, predicted: pearsonr(predicted, gold)[0],
    "spearman": lambda gold, predicted: spearmanr(predicted, gold)[0],
}
_ALL = {**_OF_CLASSES, **_OF_SCORES}


def check_metrics(names: Iterable[str], regression: bool) -> None:
    """Raises UserError for metrics of other targets."""
    kind, possible = ("scores", _OF_SCORES) if regression else ("classes", _OF_CLASSES)
    for name in names:
        if name not in possible:
            raise UserError(f"metric '{name}': for {kind}, choose from {', '.join(possible)}")


def measure(name: str, predicted: np.ndarray, gold: np.ndarray) -> float:
    """One metric of (N,) predictions and (N,) true values, N > 0: times 100, to four decimals."""
    value = math.nan
    if np.isfinite(predicted).all() and _is_defined(name, predicted, gold):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = float(_ALL[name](gold, predicted))
    if not math.isfinite(value):
        logger.warning("%s over %d examples is not defined, taken as 0", name, gold.size)
        return 0.0
    return round(100.0 * value, 4)


def _is_defined(name: str, predicted: np.ndarray, gold: np.ndarray) -> bool:
    """False also where a metric is 0 by convention."""
    if name == "f1":
        return bool((predicted == 1).any() or (gold == 1).any())
    return name == "accuracy" or bool(np.ptp(predicted) and np.ptp(gold))
