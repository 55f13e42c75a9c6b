"""The criterion ``diet_sentence_prediction``: fairseq's, with metrics over a validation set."""

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
from ..system.errors import UserError
from ..system.options import flag
from .corpus_metric import Measure, log_corpus_metrics


@dataclass
class DietSentencePredictionConfig(Config):
    metrics: str = field(
        default="",
        metadata={
            "help": "validation metrics, separated by spaces: accuracy, f1 (of class 1), matthews; "
            "with --regression-target pearson, spearman (default: accuracy or pearson). Each can "
            "be the --best-checkpoint-metric"
        },
    )


def predictions_of(logits: Tensor, regression: bool) -> Tensor:
    """Predicted scores or classes (B,), float64, of logits (B, 1) or (B, classes).

    A class is NaN if one of its example's logits is not finite: their maximum means nothing.
    """
    if regression:
        return logits.view(-1).double()
    best = logits.argmax(dim=1).double()
    return best.masked_fill(~logits.isfinite().all(dim=1), torch.nan)


class _WithLogits:
    """A model that stores its last ``logits``; fairseq's criterion returns only the loss."""

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
    """fairseq's ``sentence_prediction``, with metrics of the whole set after each validation.

    They are computed once, from the predictions of all batches and processes, and are never NaN:
    undefined ones are 0, with a warning.
    """

    def __init__(self, cfg: DietSentencePredictionConfig, task: Any) -> None:
        for name in ("report_mcc", "report_acc_and_f1", "report_pearson_and_spearman"):
            if getattr(cfg, name, False):  # of fairseq-fixed alone
                raise UserError(f"{flag(name)}: give --metrics instead")
        super().__init__(cfg, task)
        default = "pearson" if cfg.regression_target else "accuracy"
        self.metrics = cfg.metrics.split() or [default]
        check_metrics(self.metrics, cfg.regression_target)
        if task.cfg.num_classes != 2 and "f1" in self.metrics:
            raise UserError(f"metric 'f1': for 2 classes, not {task.cfg.num_classes}")

    def forward(
        self, model: Any, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Loss, sample size and logged values of fairseq's criterion.

        In validation with ``rows`` (B, 2), predicted and true values.
        """
        with_logits = _WithLogits(model)
        loss, sample_size, logged = super().forward(with_logits, sample, reduce)
        if not model.training:
            # From it, fairseq would log an accuracy with one decimal.
            logged.pop("ncorrect", None)
            predicted = predictions_of(with_logits.logits, self.regression_target)
            pairs = torch.stack([predicted, sample["target"].view(-1).double()], dim=1)
            logged["metrics"], logged["rows"] = self.metrics, pairs.cpu().numpy()
        return loss, sample_size, logged

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        logged = [log for log in logging_outputs if "rows" in log]
        if logged:
            names = logged[0]["metrics"]
            measures: Dict[str, Measure] = {name: partial(_measure, name) for name in names}
            log_corpus_metrics(np.concatenate([log["rows"] for log in logged]), measures)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """No: predictions of several processes are concatenated."""
        return False


def _measure(name: str, rows: np.ndarray) -> float:
    """A metric of ``rows`` (N, 2), predicted and true values."""
    return measure(name, rows[:, 0], rows[:, 1])
