"""Length penalties: divisors of the log-probability of a finished translation.

A length counts the end mark, as in fairseq and in Tensor2Tensor.
"""

from typing import Any, Callable, Dict, List

from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

# (subwords, alpha) -> divisor
Penalty = Callable[[int, float], float]


def fairseq_penalty(length: int, alpha: float) -> float:
    """|Y|^alpha, as fairseq has it; alpha is ``--lenpen``."""
    return float(length**alpha)


def gnmt_penalty(length: int, alpha: float) -> float:
    """((5 + |Y|) / 6)^alpha: Wu et al. 2016, "Google's Neural Machine Translation System",
    arXiv:1609.08144v2, equation 14.

    One word is divided by 1 in both; of long sentences, fairseq's 0.6 favours the longer ones more.
    Where we differ: the paper's coverage term is left out, as in Tensor2Tensor.
    """
    return float(((5 + length) / 6) ** alpha)


class GnmtGenerator(SequenceGenerator):
    """fairseq's generator with :func:`gnmt_penalty`, the penalty of the DIET paper's framework.

    It serves where this package's search does not. Both frameworks rank unfinished hypotheses by
    log P alone, which at equal length is the same; Tensor2Tensor stops when no unfinished sentence
    can still win, fairseq when as many as the beam is wide are finished. Scores of single subwords
    stay log-probabilities. With ``normalize_scores=False`` (``--unnormalized``) nothing is divided,
    as in fairseq.
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
