"""BLEU and chrF of a test set by SacreBLEU."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from sacrebleu.metrics import BLEU, CHRF

from ..errors import UserError

INTERVAL_RESAMPLES = 1000  # of the sentences, for the interval of one score
SEED = "12345"  # SacreBLEU's default


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF, 0 to 100, to four decimals, with SacreBLEU's signatures.

    ``length_ratio`` and ``precisions`` are what BLEU is made of: its words over those of the
    references, and the percentages of right 1- to 4-grams, as ``69.12/44.05/30.51/21.18``.
    """

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    length_ratio: float
    precisions: str


def score(hypotheses: list[str], references: list[str]) -> Scores:
    """Corpus BLEU (13a) and chrF of detokenized sentences. Raises UserError for unequal counts."""
    if len(hypotheses) != len(references):
        raise UserError(
            f"{len(hypotheses)} hypotheses but {len(references)} references; decode the whole set"
        )
    bleu, chrf = BLEU(), CHRF()
    bleu_score = bleu.corpus_score(hypotheses, [references])
    chrf_score = chrf.corpus_score(hypotheses, [references])
    return Scores(
        bleu=round(bleu_score.score, 4),
        bleu_signature=str(bleu.get_signature()),
        chrf=round(chrf_score.score, 4),
        chrf_signature=str(chrf.get_signature()),
        length_ratio=round(bleu_score.sys_len / bleu_score.ref_len, 4) if bleu_score.ref_len else 0,
        precisions="/".join(f"{each:.2f}" for each in bleu_score.precisions),
    )


def interval(hypotheses: list[str], references: list[str]) -> tuple[float, float]:
    """BLEU's mean over bootstrap resamples of the sentences, and half of its 95% interval.

    The resamples are always the same, so the same sentences give the same numbers.
    """
    # SacreBLEU takes its seed from the environment alone.
    with patch.dict(os.environ, SACREBLEU_SEED=SEED):
        found = BLEU().corpus_score(hypotheses, [references], n_bootstrap=INTERVAL_RESAMPLES)
    return round(found._mean, 4), round(found._ci, 4)


def scores(hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    """Fields of ``records.Result`` that the hypotheses decide. Raises UserError as ``score``."""
    found = vars(score(hypotheses, references))
    mean, half = interval(hypotheses, references)
    return {"sentences": len(hypotheses), **found, "bleu_mean": mean, "bleu_ci": half}


def without_version(signature: str) -> str:
    """A signature without SacreBLEU's version, which may have moved on."""
    return re.sub(r"\|version:[^|]*", "", signature)
