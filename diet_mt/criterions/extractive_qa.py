"""The criterion ``extractive_qa``: where does the answer begin, and where does it end?"""

import math
from functools import partial
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from ..bert.answers import candidates_of, no_answer
from ._collected import log_whole_set


def answerable(src_tokens: Tensor, src_lengths: Tensor, context: Tensor) -> Tensor:
    """(B, S), where an answer may begin or end: at <s>, which says that there is none, and in the
    context, from column ``context`` (B,) to before the last </s>; not in the question or padding.
    """
    columns = torch.arange(src_tokens.size(1), device=src_tokens.device)
    inside = (columns >= context[:, None]) & (columns < src_lengths[:, None] - 1)
    return inside | (columns == 0)


@register_criterion("extractive_qa", dataclass=FairseqDataclass)
class ExtractiveQACriterion(FairseqCriterion):
    """Devlin et al. 2018, section 4.2: the mean of two cross-entropies, over the tokens of a window
    where an answer may begin and where it may end. Logged in bits, as all of fairseq's are.
    """

    def forward(
        self, model: Any, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Returns the sum over windows, how many they are, and what to log."""
        given = sample["net_input"]
        logits = model(**given, use_span_head=True)[0].float()  # (B, S, 2)
        allowed = answerable(given["src_tokens"], given["src_lengths"], sample["context"])
        start, end = logits.masked_fill(~allowed[..., None], -math.inf).unbind(-1)
        how = "sum" if reduce else "none"
        loss = F.cross_entropy(start, sample["start"], reduction=how)
        loss = (loss + F.cross_entropy(end, sample["end"], reduction=how)) / 2
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
        """What each window says, (windows, 6), as ``ExtractiveQATask.scores`` takes it."""
        said = []
        lengths = sample["net_input"]["src_lengths"].tolist()
        windows, contexts = sample["window"].tolist(), sample["context"].tolist()
        rows = zip(logits.cpu().numpy(), windows, contexts, lengths, strict=True)
        for row, window, context, length in rows:
            start, end = np.ascontiguousarray(row[:length].T)
            extents = self.task.extents_of(window)
            for best in candidates_of(start, end, extents, context, self.task.cfg.max_answer, 1):
                nothing = no_answer(start, end).score
                place = best.begin, best.end
                said.append((window, *place, best.start_logit, best.end_logit, nothing))
        return np.asarray(said, dtype=np.float64).reshape(-1, 6)

    def log_scores(self, logging_outputs: List[Dict[str, Any]]) -> None:
        """F1 and exact match, from 0 to 100, of whole questions over all of a validation set."""
        found = [output["answers"] for output in logging_outputs if len(output.get("answers", ()))]
        if found:
            measures: Dict[str, Callable[[np.ndarray], float]] = {
                name: partial(self._score, name) for name in ("f1", "exact_match")
            }
            log_whole_set(np.concatenate(found), measures)

    def _score(self, name: str, said: np.ndarray) -> float:
        return round(float(self.task.scores(said)[name]), 4)

    @staticmethod
    def reduce_metrics(logging_outputs: List[Dict[str, Any]]) -> None:
        """The loss for one window; scores are the task's, which knows the gold answers."""
        total = sum(output.get("loss", 0) for output in logging_outputs)
        windows = sum(output.get("sample_size", 0) for output in logging_outputs)
        metrics.log_scalar("loss", total / windows / math.log(2), windows, round=3)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Answers of several processes are gathered."""
        return False
