"""Metrics of a whole validation set that are not means over batches, such as F1."""

from typing import Any, Callable, Dict, List

import numpy as np
from fairseq.logging import metrics
from fairseq.logging.meters import Meter

# Place in fairseq's log of a validation: after the loss, before speeds.
_PRIORITY = 15

Measure = Callable[[np.ndarray], float]


class CorpusMetric(Meter):
    """A metric over all rows (N, ...) of a validation, in the order of the batches."""

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
        """Empty: a validation is never resumed."""
        return {}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.reset()


def log_corpus_metrics(rows: np.ndarray, measures: Dict[str, Measure]) -> None:
    """Adds the rows of one batch, from all processes, to the metrics of the current validation.

    ``measures``: the metrics by name, functions of all rows.
    """
    aggregators = metrics.get_active_aggregators()
    # The innermost one is of this batch alone; fairseq reads all its values after each batch.
    for aggregator in aggregators[:-1] or aggregators:
        for name, measure in measures.items():
            if name not in aggregator:
                aggregator.add_meter(name, CorpusMetric(measure), _PRIORITY)
            aggregator[name].update(rows)
