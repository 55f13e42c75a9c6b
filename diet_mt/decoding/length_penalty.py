"""Length penalties: divisors of the log-probability of a finished translation.

A length counts the end mark, as in fairseq and in Tensor2Tensor.
"""

from typing import Any, Callable, Dict, List

from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

# (length in subwords, alpha) -> divisor
Penalty = Callable[[int, float], float]


def fairseq_penalty(length: int, alpha: float) -> float:
    """|Y|^alpha, fairseq's length penalty; alpha is ``--lenpen``."""
    return float(length**alpha)


def gnmt_penalty(length: int, alpha: float) -> float:
    """((5 + |Y|) / 6)^alpha: Wu et al. 2016, "Google's Neural Machine Translation System",
    arXiv:1609.08144v2, equation 14.

    Both penalties are 1 for one subword; at the same alpha, fairseq's favours longer translations
    more. Unlike the paper, there is no coverage term, as in Tensor2Tensor.
    """
    return float(((5 + length) / 6) ** alpha)


class GnmtGenerator(SequenceGenerator):
    """fairseq's generator with :func:`gnmt_penalty`, the penalty of the DIET paper's framework.

    For options that this package's search does not support. Both frameworks rank unfinished
    hypotheses, which are of equal length, by log P. Tensor2Tensor stops when no unfinished one can
    still win, fairseq when as many as the beam size are finished. Scores of subwords remain
    log-probabilities. ``normalize_scores=False`` (``--unnormalized``): no penalty, as in fairseq.
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
            for hypotheses, old in zip(finalized, before, strict=True):
                for hypothesis in hypotheses[old:]:
                    hypothesis["score"] = hypothesis["score"] / divisor
        return finished


class GnmtGeneratorWithAlignment(GnmtGenerator, SequenceGeneratorWithAlignment):
    """:class:`GnmtGenerator` for ``--print-alignment``."""
