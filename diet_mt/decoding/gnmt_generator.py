"""fairseq's generator with the length penalty that the DIET paper's framework used.

It serves what the search of this package does not (``choice.py``). Both frameworks rank what is
unfinished by log P alone, which at equal length is the same; Tensor2Tensor stops when no unfinished
sentence can still win, fairseq when as many as the beam is wide are finished.
"""

from typing import Any, Dict, List

from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

from .penalty import gnmt_penalty


class GnmtGenerator(SequenceGenerator):
    """Finished translations are divided by :func:`gnmt_penalty`, not by fairseq's penalty.

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
