"""Scores of translations: BLEU and chrF by SacreBLEU, and the accuracy of roles."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sacrebleu.metrics import BLEU, CHRF

from ..corpora.parallel import twins_beside
from ..errors import UserError
from ..files import text_lines

INTERVAL_RESAMPLES = 1000  # of the sentences, for the interval of one score
SEED = "12345"  # SacreBLEU's default


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF, 0 to 100, to four decimals, with SacreBLEU's signatures.

    ``length_ratio``: words over those of the references; ``precisions``: percentages of matching
    1- to 4-grams, as ``69.12/44.05/30.51/21.18``.
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
        score = BLEU().corpus_score(hypotheses, [references], n_bootstrap=INTERVAL_RESAMPLES)
    return round(score._mean, 4), round(score._ci, 4)


def scores(hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    """Fields of ``records.Result`` that the hypotheses decide. Raises UserError as ``score``."""
    fields = vars(score(hypotheses, references))
    mean, half = interval(hypotheses, references)
    return {"sentences": len(hypotheses), **fields, "bleu_mean": mean, "bleu_ci": half}


def without_version(signature: str) -> str:
    """A signature without SacreBLEU's version, which may have moved on."""
    return re.sub(r"\|version:[^|]*", "", signature)


def role_accuracy(
    hypotheses: Sequence[str], references: Sequence[str], twins: Sequence[str]
) -> float | None:
    """Percentage of translations closer to their reference than to that of their twin, the same
    sentence with subject and object swapped; None without twins.

    Closeness: words shared in the same order (the ratio of Python's difflib). A tie counts half, so
    that chance is 50. ``twins``: references of the twins; empty where a sentence has none.
    """
    points = [
        _point(hypothesis, reference, twin)
        for hypothesis, reference, twin in zip(hypotheses, references, twins, strict=True)
        if twin
    ]
    return round(100 * sum(points) / len(points), 4) if points else None


def _point(hypothesis: str, reference: str, twin: str) -> float:
    own, other = (
        SequenceMatcher(None, each.split(), hypothesis.split(), autojunk=False).ratio()
        for each in (reference, twin)
    )
    return 0.5 if own == other else float(own > other)


def roles_of(hypotheses: Sequence[str], lines: Sequence[str], references: Path) -> float | None:
    """The role accuracy of a test set that was prepared with twins; None of another.

    ``lines``: of the file ``references``. Raises UserError where the file of twins cannot be read,
    or has another number of lines.
    """
    file = twins_beside(references)
    if not file.is_file():
        return None
    twins = [line for _, line in text_lines(file)]
    if len(twins) != len(lines):
        raise UserError(f"{file}: {len(twins)} lines, but {references} has {len(lines)}")
    return role_accuracy(hypotheses, lines, twins)
