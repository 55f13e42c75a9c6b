"""The criterion ``diet_sentence_prediction``: fairseq's, measured over the whole validation set."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.sentence_prediction import SentencePredictionConfig as Config
from fairseq.criterions.sentence_prediction import SentencePredictionCriterion
from torch import Tensor

from ..bert.metrics import check_metrics, measure
from ..errors import UserError
from ._collected import log_whole_set


@dataclass
class DietSentencePredictionConfig(Config):
    metrics: str = field(
        default="",
        metadata={
            "help": "what a validation measures, by spaces: accuracy, f1 (of class 1), matthews; "
            "with --regression-target pearson, spearman (default: accuracy or pearson). Each can "
            "be the --best-checkpoint-metric"
        },
    )


def predictions_of(logits: Tensor, regression: bool) -> Tensor:
    """Logits (B, classes) or (B, 1) -> (B,) in float64: scores, or numbers of classes.

    NaN where a logit is not finite: the best of such classes means nothing.
    """
    if regression:
        return logits.view(-1).double()
    best = logits.argmax(dim=1).double()
    return best.masked_fill(~logits.isfinite().all(dim=1), torch.nan)


class _Remembering:
    """A model that keeps what it gave: fairseq's criterion says the loss and not the logits."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.logits: Tensor = torch.empty(0)

    def __call__(self, **net_input: Any) -> Tuple[Tensor, Any]:
        out: Tuple[Tensor, Any] = self._model(**net_input)
        self.logits = out[0]
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


@register_criterion("diet_sentence_prediction", dataclass=DietSentencePredictionConfig)
class DietSentencePredictionCriterion(SentencePredictionCriterion):
    """As ``sentence_prediction``; after each validation come the metrics of the whole set.

    They are computed once, from the predictions of all batches and processes, and never are NaN:
    what is not defined is 0, and a warning says why.
    """

    def __init__(self, cfg: DietSentencePredictionConfig, task: Any) -> None:
        """Raises UserError for metrics that do not fit the targets, or the labels' number."""
        for name in ("report_mcc", "report_acc_and_f1", "report_pearson_and_spearman"):
            if getattr(cfg, name, False):  # of fairseq-fixed alone
                raise UserError(f"--{name.replace('_', '-')}: give --metrics instead")
        super().__init__(cfg, task)
        usual = "pearson" if cfg.regression_target else "accuracy"
        self.metrics = check_metrics(cfg.metrics.split() or [usual], cfg.regression_target)
        if task.cfg.num_classes != 2 and "f1" in self.metrics:
            raise UserError(f"metric 'f1': for 2 classes, not {task.cfg.num_classes}")

    def forward(
        self, model: Any, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """fairseq's loss, its number of examples, and what is logged."""
        remembering = _Remembering(model)
        loss, sample_size, logged = super().forward(remembering, sample, reduce)
        if not model.training:
            # fairseq would make an accuracy of its own of it, with one decimal.
            logged.pop("ncorrect", None)
            logged["metrics"] = self.metrics
            logged["rows"] = self._rows(remembering.logits, sample["target"])
        return loss, sample_size, logged

    def _rows(self, logits: Tensor, targets: Tensor) -> np.ndarray:
        """Logits (B, classes) or (B, 1), targets (B,) or (B, 1) -> (B, 2): predicted and true."""
        predicted = predictions_of(logits, self.regression_target)
        pair = torch.stack([predicted, targets.view(-1).double()], dim=1)
        rows: np.ndarray = pair.cpu().numpy()
        return rows

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        found = [log for log in logging_outputs if "rows" in log]
        if found:
            rows = np.concatenate([log["rows"] for log in found])
            log_whole_set(rows, {name: partial(_measure, name) for name in found[0]["metrics"]})

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """No: predictions of several processes stand one behind the other."""
        return False


def _measure(name: str, rows: np.ndarray) -> float:
    """``rows``: (N, 2)."""
    return measure(name, rows[:, 0], rows[:, 1])
