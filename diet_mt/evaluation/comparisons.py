"""Significance of differences between systems, computed from the counts of their sentences.

A system is compared with every other system of its group by the paired bootstrap of
``resampling``, over sentences and seeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from .groups import Group, Line
from .records import Result
from .resampling import RESAMPLES, Floats, bleu, half_width, p_value, resampled
from .sentences import Kept

DIGITS = 4  # decimals of BLEU differences and p-values
SMALLEST_P = 1 / RESAMPLES
_MARK = 12  # hexadecimal digits


@dataclass(frozen=True)
class Resampled:
    """Systems of one group, resampled. BLEU from 0 to 100, mean of the seeds."""

    lines: tuple[Line, ...]
    scores: tuple[float, ...]
    samples: Floats  # (lines, resamples)
    sentences: int

    def half_width(self, line: Line) -> float:
        """Half of the 95 % interval of BLEU."""
        return round(half_width(self.samples[self.lines.index(line)]), DIGITS)

    def difference(self, first: Line, second: Line) -> tuple[float, float, float]:
        """BLEU of the first above the second, half of its 95 % interval, and the p-value."""
        one, other = self.lines.index(first), self.lines.index(second)
        differences = self.samples[one] - self.samples[other]
        return self.scores[one] - self.scores[other], half_width(differences), self.p(first, second)

    def p(self, first: Line, second: Line) -> float:
        """The p-value of a difference."""
        one, other = self.lines.index(first), self.lines.index(second)
        difference = self.scores[one] - self.scores[other]
        # Equal scores or a single sentence: the resamples carry no information, so p = 1.
        if round(difference, DIGITS) == 0 or self.sentences == 1:
            return 1.0
        return p_value(self.samples[one] - self.samples[other], difference)


def resample(lines: Sequence[Line], statistics: Sequence[Sequence[Floats]]) -> Resampled:
    """Resamples systems; ``statistics``: (sentences, 10) of each seed of each line."""
    scores = [[float(bleu(each.sum(axis=0))) for each in seeds] for seeds in statistics]
    return Resampled(
        lines=tuple(lines),
        scores=tuple(sum(each) / len(each) for each in scores),
        samples=resampled(statistics, [int(mark_of(line.results), 16) for line in lines]),
        sentences=len(statistics[0][0]),
    )


def resampled_group(group: Group, kept: Kept) -> Resampled | None:
    """The systems of a group whose sentences are all counted; None without any."""
    lines = [line for line in group.lines if kept.is_counted(line.results)]
    statistics = [[kept.statistics(result) for result in line.results] for line in lines]
    return resample(lines, statistics) if lines else None


def p_text(value: float) -> str:
    """A p-value as text: ``≤ 0.0001`` for the smallest, (0 + 1) / (10,000 + 1)."""
    return f"≤ {SMALLEST_P:g}" if value <= SMALLEST_P else f"{value:.{DIGITS}f}"


def mark_of(seeds: Sequence[Result]) -> str:
    """Identifier of a system: twelve digits of the SHA-256 of its hypotheses' checksums."""
    digests = " ".join(sorted(each.hypotheses_sha256 for each in seeds))
    return hashlib.sha256(digests.encode()).hexdigest()[:_MARK]
