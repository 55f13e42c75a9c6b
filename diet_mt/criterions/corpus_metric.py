"""Metrics of a whole validation set that are not means over batches, such as F1."""

from typing import Any, Callable, Dict, List

import numpy as np
from fairseq.logging import metrics
from fairseq.logging.meters import Meter

# Behind the loss in what fairseq prints of a validation, before speeds.
_PRIORITY = 15

Measure = Callable[[np.ndarray], float]


class CorpusMetric(Meter):
    """A metric of all rows (N, ...), in the order of their batches."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self.reset()

    def reset(self) -> None:
        self._parts: List[np.ndarray] = []

    def update(self, rows: np.ndarray) -> None:
        self._parts.append(rows)

    @property
    def smoothed_value(self) -> float:
        return self._measure(np.concatenate(self._parts))

    def state_dict(self) -> Dict[str, Any]:
        """Nothing: a validation is never continued."""
        return {}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.reset()


def log_corpus_metrics(rows: np.ndarray, measures: Dict[str, Measure]) -> None:
    """Adds the rows of one batch, those of all processes, to the validation under way, whose
    results will hold each of ``measures`` by its name.
    """
    aggregators = metrics.get_active_aggregators()
    # The innermost one is of this batch alone, and fairseq reads all of it after each batch.
    for aggregator in aggregators[:-1] or aggregators:
        for name, measure in measures.items():
            if name not in aggregator:
                aggregator.add_meter(name, CorpusMetric(measure), _PRIORITY)
            aggregator[name].update(rows)
