"""Outcomes of the bootstrap, kept beside the results: ``significance/CORPUS.jsonl``.

One JSON line for each system. It is known by the checksums of its hypothesis files and of the
references, so it never speaks for results other than those that were compared: with another seed,
or evaluated again, a system is without a p-value until it is computed again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UserError
from .json_rows import Row, read_rows, wrong_field
from .records import Result

DIGITS = 4  # of a difference of BLEU, after the point
_MARK = 12  # hexadecimal digits

Key = tuple[str, str]  # mark of a system's seeds, checksum of the references


@dataclass(frozen=True)
class Comparison(Row):
    """One system beside all others of its group. BLEU from 0 to 100, mean of the seeds."""

    test_set: str
    direction: str
    system: str
    seeds: list[int]
    bleu: float
    bleu_ci: float  # half of the 95 % interval, over sentences and seeds
    p_values: dict[str, float]  # mark of each other system -> p-value of the difference
    signature: str  # SacreBLEU's, with the resamples (bs) and their seed
    mark: str
    references_sha256: str
    # mark of each other system -> half of the 95 % interval of the difference
    half_widths: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for value in self.p_values.values():
            if not 0 <= value <= 1:
                raise wrong_field("p_values", value, "0 to 1")
        if self.bleu_ci < 0:  # of two seeds far apart it can be more than 100
            raise wrong_field("bleu_ci", self.bleu_ci, "0 or more")

    @property
    def key(self) -> Key:
        return self.mark, self.references_sha256

    def p_to(self, seeds: Sequence[Result]) -> float | None:
        """The p-value of the difference to another system; None where they were not compared."""
        return self.p_values.get(mark_of(seeds))


def p_text(value: float, signature: str) -> str:
    """A p-value as it is shown: ``≤ 0.0001`` for the smallest that n = 10,000 resamples give.

    It is (c + 1) / (n + 1), where c of them differ by more. ``signature``: with the resamples.
    """
    smallest = smallest_p(signature)
    return f"≤ {smallest:g}" if value <= smallest else f"{value:.{DIGITS}f}"


def smallest_p(signature: str) -> float:
    """The bound of a p-value that no resample exceeds; 0 where their number is not known."""
    found = re.search(r"\bbs:([1-9]\d*)", signature)
    return 1 / int(found[1]) if found else 0.0


def mark_of(seeds: Sequence[Result]) -> str:
    """What a system is known by: twelve digits of the SHA-256 of its hypotheses' checksums."""
    digests = " ".join(sorted(each.hypotheses_sha256 for each in seeds))
    return hashlib.sha256(digests.encode()).hexdigest()[:_MARK]


def key_of(seeds: Sequence[Result]) -> Key:
    """The key of the comparison of one system, by its results."""
    return mark_of(seeds), seeds[0].references_sha256


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
