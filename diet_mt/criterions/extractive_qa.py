"""The criterion ``extractive_qa``: cross-entropy of an answer's first and last token."""

import math
from functools import partial
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from ..bert.answers import candidates_of, no_answer
from .corpus_metric import Measure, log_corpus_metrics


def answerable(src_tokens: Tensor, src_lengths: Tensor, context: Tensor) -> Tensor:
    """Mask (B, S) of tokens where an answer may begin or end: <s>, for no answer, and the context,
    from column ``context`` (B,) to before the last </s>, by ``src_lengths`` (B,).
    """
    columns = torch.arange(src_tokens.size(1), device=src_tokens.device)
    inside = (columns >= context[:, None]) & (columns < src_lengths[:, None] - 1)
    return inside | (columns == 0)


@register_criterion("extractive_qa", dataclass=FairseqDataclass)
class ExtractiveQACriterion(FairseqCriterion):
    """Mean of the cross-entropies of start and end of answers (Devlin et al. 2018, section 4.2)."""

    def forward(
        self, model: Any, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Sum of the losses of windows, their number, and values to log."""
        inputs = sample["net_input"]
        logits = model(**inputs, use_span_head=True)[0].float()  # (B, S, 2)
        allowed = answerable(inputs["src_tokens"], inputs["src_lengths"], sample["context"])
        start, end = logits.masked_fill(~allowed[..., None], -math.inf).unbind(-1)
        reduction = "sum" if reduce else "none"
        loss = F.cross_entropy(start, sample["start"], reduction=reduction)
        loss = (loss + F.cross_entropy(end, sample["end"], reduction=reduction)) / 2
        windows = len(sample["start"])
        output: Dict[str, Any] = {
            "loss": loss.data,
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": windows,
        }
        if not model.training:
            output["answers"] = self._answers(sample, logits.detach())
        return loss, windows, output

    def _answers(self, sample: Dict[str, Any], logits: Tensor) -> np.ndarray:
        """The best answer of each window, (windows, 6), as in ``ExtractiveQATask.scores``."""
        answers = []
        lengths = sample["net_input"]["src_lengths"].tolist()
        windows, contexts = sample["window"].tolist(), sample["context"].tolist()
        rows = zip(logits.cpu().numpy(), windows, contexts, lengths, strict=True)
        for row, window, context, length in rows:
            start, end = np.ascontiguousarray(row[:length].T)
            extents = self.task.extents_of(window)
            nothing = no_answer(start, end).score
            for best in candidates_of(start, end, extents, context, self.task.cfg.max_answer, 1):
                answers.append(
                    (window, best.begin, best.end, best.start_logit, best.end_logit, nothing)
                )
        return np.asarray(answers, dtype=np.float64).reshape(-1, 6)

    def log_scores(self, logging_outputs: List[Dict[str, Any]]) -> None:
        """Logs F1 and exact match, 0 to 100, over all questions of a validation set."""
        parts = [output["answers"] for output in logging_outputs if "answers" in output]
        answers = np.concatenate(parts) if parts else np.empty(0)
        if len(answers):
            measures: Dict[str, Measure] = {
                name: partial(self._score, name) for name in ("f1", "exact_match")
            }
            log_corpus_metrics(answers, measures)

    def _score(self, name: str, answers: np.ndarray) -> float:
        return round(float(self.task.scores(answers)[name]), 4)

    @staticmethod
    def reduce_metrics(logging_outputs: List[Dict[str, Any]]) -> None:
        """Logs the mean loss of windows in bits; scores need the task, which has the answers."""
        total = sum(output.get("loss", 0) for output in logging_outputs)
        windows = sum(output.get("sample_size", 0) for output in logging_outputs)
        metrics.log_scalar("loss", total / windows / math.log(2), windows, round=3)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """No: answers of several processes are concatenated."""
        return False
