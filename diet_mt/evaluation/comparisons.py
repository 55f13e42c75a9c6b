"""p-values kept beside the results: ``significance/CORPUS.jsonl``, one JSON line for each pair.

A line is known by the checksums of both hypothesis files and of the references, so it never
speaks for results other than those that were compared: evaluated again, they are without a
p-value until it is computed again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from .json_rows import Row, read_rows, wrong_field
from .records import Result

DIGITS = 4  # of a difference of BLEU, after the point
RESAMPLES = 1000  # of a test whose signature does not say

# Checksums of a system's hypotheses, of the baseline's, and of the references.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Comparison(Row):
    """A paired bootstrap test of one result against one of the baseline. BLEU from 0 to 100."""

    test_set: str
    direction: str
    system: str
    seed: int
    baseline: str
    baseline_seed: int
    bleu_difference: float  # the system's BLEU above the baseline's
    p_value: float
    signature: str  # SacreBLEU's: resamples (bs), their seed, tokenizer, version
    hypotheses_sha256: str
    baseline_sha256: str
    references_sha256: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.p_value <= 1:
            raise wrong_field("p_value", self.p_value, "0 to 1")

    @property
    def key(self) -> Key:
        return self.hypotheses_sha256, self.baseline_sha256, self.references_sha256

    @property
    def p_text(self) -> str:
        """The p-value as it is shown: ``≤ 0.001`` for the smallest that n = 1,000 resamples give.

        SacreBLEU's p-value is (c + 1) / (n + 1), where c of them differ by more.
        """
        found = re.search(r"\bbs:([1-9]\d*)", self.signature)
        resamples = int(found[1]) if found else RESAMPLES
        if self.p_value <= 1 / resamples:
            return f"≤ {1 / resamples:g}"
        return f"{self.p_value:.{max(3, len(str(resamples - 1)))}f}"


def comparison_of(
    result: Result, baseline: Result, *, bleu_difference: float, p_value: float, signature: str
) -> Comparison:
    """What a test of these two has found."""
    hypotheses, others, references = key_of(result, baseline)
    return Comparison(
        test_set=result.test_set,
        direction=result.direction,
        system=result.system,
        seed=result.seed,
        baseline=baseline.system,
        baseline_seed=baseline.seed,
        bleu_difference=round(bleu_difference, DIGITS),
        p_value=round(p_value, 6),
        signature=signature,
        hypotheses_sha256=hypotheses,
        baseline_sha256=others,
        references_sha256=references,
    )


def key_of(result: Result, baseline: Result) -> Key:
    """The key of the comparison of two results."""
    return result.hypotheses_sha256, baseline.hypotheses_sha256, result.references_sha256


def file_beside(results: Path) -> Path:
    """Where the comparisons of a file of results are kept."""
    return results.parent / "significance" / results.name


def read_comparisons(path: Path) -> dict[Key, Comparison]:
    """What is kept in ``path``; nothing where there is no such file.

    Raises UserError for a file that cannot be read, or a line that is no comparison.
    """
    if not path.exists():
        return {}
    try:
        return {row.key: row for row in read_rows(Comparison, path)}
    except UserError as error:
        raise UserError(f"{error}; delete it and run `diet-mt compare` again") from None
