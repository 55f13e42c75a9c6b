"""Length penalties: what the log-probability of a finished translation is divided by.

A length counts the end mark, as in fairseq and in Tensor2Tensor.
"""

from __future__ import annotations

from typing import Callable

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
