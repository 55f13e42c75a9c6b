"""fairseq's beam search with the length penalty that the DIET paper's framework used.

Wu et al. 2016, "Google's Neural Machine Translation System", arXiv:1609.08144v2, equation 14: a
finished translation Y of the source X is worth

    log P(Y | X) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^alpha

where fairseq divides by |Y|^alpha. alpha is ``--lenpen``; |Y| counts the end mark, as in fairseq
and in Tensor2Tensor. One word is divided by 1 in both; of long sentences, fairseq's 0.6 favours the
longer ones more.

Where we differ: the paper's coverage term is left out, as in Tensor2Tensor. Both frameworks rank
what is unfinished by log P alone, which at equal length is the same; Tensor2Tensor stops when no
unfinished sentence can still win, fairseq when as many as the beam is wide are finished.
"""

from typing import Any, Dict, List

from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment


def gnmt_penalty(length: int, alpha: float) -> float:
    """What the log-probability of ``length`` subwords is divided by; the end mark counts."""
    return float(((5 + length) / 6) ** alpha)


class GnmtGenerator(SequenceGenerator):
    """Beam search whose finished translations are divided by this penalty, not by fairseq's.

    Scores of single subwords stay log-probabilities. With ``normalize_scores=False``
    (``--unnormalized``) nothing is divided, as in fairseq.
    """

    def __init__(self, *args: Any, normalize_scores: bool = True, **options: Any) -> None:
        super().__init__(*args, normalize_scores=False, **options)
        self.divides_scores = normalize_scores

    def finalize_hypos(
        self,
        step: int,
        bbsz_idx: Any,
        eos_scores: Any,
        tokens: Any,
        scores: Any,
        finalized: List[List[Dict[str, Any]]],
        *rest: Any,
    ) -> List[int]:
        """Adds the hypotheses that end at ``step``, counted from 0, to those of their sentence."""
        before = [len(hypotheses) for hypotheses in finalized]
        finished: List[int] = super().finalize_hypos(
            step, bbsz_idx, eos_scores, tokens, scores, finalized, *rest
        )
        if self.divides_scores:
            divisor = gnmt_penalty(step + 1, self.len_penalty)
            for hypotheses, known in zip(finalized, before, strict=True):
                for hypothesis in hypotheses[known:]:
                    hypothesis["score"] = hypothesis["score"] / divisor
        return finished


class GnmtGeneratorWithAlignment(GnmtGenerator, SequenceGeneratorWithAlignment):
    """The same, for ``--print-alignment``."""
