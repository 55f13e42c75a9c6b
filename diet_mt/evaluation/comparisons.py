"""Significance of differences between systems, computed from the counts of their sentences.

A system is compared with every other system of its group by the paired bootstrap of
``resampling``, over sentences and seeds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .bleu import SEED
from .groups import Group, Line
from .records import Result
from .resampling import RESAMPLES, Floats, bleu, half_width, p_value, resampled
from .sentences import Kept

DIGITS = 4  # of a difference of BLEU, after the point
_MARK = 12  # hexadecimal digits

Key = tuple[str, str]  # mark of a system's seeds, checksum of the references


@dataclass(frozen=True)
class Comparison:
    """One system against all others of its group. BLEU from 0 to 100, mean of the seeds."""

    bleu_ci: float  # half of the 95 % interval, over sentences and seeds
    p_values: Mapping[str, float]  # mark of each other system -> p-value of the difference
    signature: str  # SacreBLEU's, with the resamples (bs) and their seed
    # mark of each other system -> half of the 95 % interval of the difference
    half_widths: Mapping[str, float] = field(default_factory=dict)

    def p_to(self, seeds: Sequence[Result]) -> float | None:
        """The p-value of the difference to another system; None without its counts."""
        return self.p_values.get(mark_of(seeds))


@dataclass(frozen=True)
class Resampled:
    """Systems of one group, resampled. BLEU from 0 to 100, mean of the seeds."""

    lines: tuple[Line, ...]
    scores: tuple[float, ...]
    samples: Floats  # (lines, resamples)
    sentences: int

    @property
    def signature(self) -> str:
        """SacreBLEU's, with the resamples and their seed."""
        own = self.lines[0].results[0].bleu_signature
        return own.replace("nrefs:1|", f"nrefs:1|bs:{RESAMPLES}|seed:{SEED}|")

    def difference(self, first: Line, second: Line) -> tuple[float, float, float]:
        """BLEU of the first above the second, half of its 95 % interval, and the p-value."""
        one, other = self.lines.index(first), self.lines.index(second)
        difference = self.scores[one] - self.scores[other]
        differences = self.samples[one] - self.samples[other]
        # Equal scores or a single sentence: the resamples carry no information, so p = 1.
        uninformative = round(difference, DIGITS) == 0 or self.sentences == 1
        p = 1.0 if uninformative else p_value(differences, difference)
        return difference, half_width(differences), p

    def comparison(self, line: Line) -> Comparison:
        """One of the systems against the others."""
        others = {
            mark_of(other.results): self.difference(line, other)
            for other in self.lines
            if other is not line
        }
        return Comparison(
            bleu_ci=round(half_width(self.samples[self.lines.index(line)]), DIGITS),
            p_values={mark: round(p, 6) for mark, (_, _, p) in others.items()},
            signature=self.signature,
            half_widths={mark: round(half, DIGITS) for mark, (_, half, _) in others.items()},
        )


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


def compare(groups: Iterable[Group], kept: Kept) -> dict[Key, Comparison]:
    """Every counted system of every group, against the others of its group."""
    tables = [table for each in groups if (table := resampled_group(each, kept))]
    return {
        key_of(line.results): table.comparison(line) for table in tables for line in table.lines
    }


def p_text(value: float, signature: str) -> str:
    """A p-value as text: ``≤ 0.0001`` for the smallest that n = 10,000 resamples give.

    It is (c + 1) / (n + 1), where c of them differ by more. ``signature``: with the resamples.
    """
    smallest = smallest_p(signature)
    return f"≤ {smallest:g}" if value <= smallest else f"{value:.{DIGITS}f}"


def smallest_p(signature: str) -> float:
    """The bound of a p-value that no resample exceeds; 0 for an unknown number of resamples."""
    resamples = re.search(r"\bbs:([1-9]\d*)", signature)
    return 1 / int(resamples[1]) if resamples else 0.0


def mark_of(seeds: Sequence[Result]) -> str:
    """Identifier of a system: twelve digits of the SHA-256 of its hypotheses' checksums."""
    digests = " ".join(sorted(each.hypotheses_sha256 for each in seeds))
    return hashlib.sha256(digests.encode()).hexdigest()[:_MARK]


def key_of(seeds: Sequence[Result]) -> Key:
    """The key of the comparison of one system, by its results."""
    return mark_of(seeds), seeds[0].references_sha256
