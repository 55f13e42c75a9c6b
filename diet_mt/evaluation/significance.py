"""Significance of differences between systems, computed from the counts of their sentences.

A system is compared with every other system of its group by the paired bootstrap of ``scores``,
over sentences and seeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from sacrebleu.metrics import BLEU

from ..corpora.parallel import read_lines
from ..system.errors import UserError, printable
from ..system.files import sha256
from ..system.options import need_known
from .groups import Group, Line, group
from .hypotheses import Sentences, read_hypotheses, read_sentences, source_of
from .records import read_results
from .scores import ORDERS, RESAMPLES, Floats, bleu, half_width, p_value, resampled

DIGITS = 4  # decimals of BLEU differences and p-values
SMALLEST_P = 1 / RESAMPLES


@dataclass(frozen=True)
class Resampled:
    """Systems of one group, resampled. BLEU from 0 to 100, mean of the seeds."""

    lines: tuple[Line, ...]
    scores: tuple[float, ...]
    samples: Floats  # (lines, resamples)
    sentences: int
    means: Floats  # as samples, over sentences alone
    between: tuple[float, float]  # variance between seeds, and the part that sentences explain

    def half_width(self, line: Line) -> float:
        """Half of the 95 % interval of BLEU."""
        return round(half_width(self.samples[self.lines.index(line)]), DIGITS)

    def difference(self, first: Line, second: Line) -> tuple[float, float, float]:
        """BLEU of the first above the second, half of its 95 % interval, and the p-value."""
        value, samples = self._difference(first, second)
        return value, half_width(samples), self.p(first, second)

    def over_sentences(self, first: Line, second: Line) -> float:
        """The variance of a difference over sentences that more seeds would not reduce."""
        one, other = self.lines.index(first), self.lines.index(second)
        of_seeds = self.between[1] * sum(1 / len(each.results) for each in (first, second))
        return max(float((self.means[one] - self.means[other]).var()) - of_seeds, 0)

    def p(self, first: Line, second: Line) -> float:
        """The p-value of a difference."""
        value, samples = self._difference(first, second)
        # Equal scores or a single sentence: the resamples carry no information, so p = 1.
        no_information = round(value, DIGITS) == 0 or self.sentences == 1
        return 1.0 if no_information else p_value(samples, value)

    def _difference(self, first: Line, second: Line) -> tuple[float, Floats]:
        one, other = self.lines.index(first), self.lines.index(second)
        return self.scores[one] - self.scores[other], self.samples[one] - self.samples[other]


def resample(lines: Sequence[Line], counts: Sentences) -> Resampled:
    """Resamples the systems of one group."""
    statistics = [[counts.statistics(result) for result in line.results] for line in lines]
    scores = [[float(bleu(each.sum(axis=0))) for each in seeds] for seeds in statistics]
    samples, means, between = resampled(statistics, _streams(lines))
    of_lines = tuple(sum(each) / len(each) for each in scores)
    return Resampled(tuple(lines), of_lines, samples, len(statistics[0][0]), means, between)


def _streams(lines: Sequence[Line]) -> list[int]:
    """Seeds of the draws of each system, from the checksums of its hypotheses; equal for systems
    that share a checkpoint, as rotary and its scaled frequencies do.
    """
    own = [" ".join(sorted(each.hypotheses_sha256 for each in line.results)) for line in lines]
    streams = [int(hashlib.sha256(each.encode()).hexdigest()[:12], 16) for each in own]
    trained = [{each.checkpoint_sha256 for each in line.results} for line in lines]
    pairs = list(zip(streams, trained, strict=True))
    return [min(stream for stream, other in pairs if mine & other) for mine in trained]


def p_text(value: float) -> str:
    """A p-value as text: ``≤ 0.0001`` for the smallest, (0 + 1) / (10,000 + 1)."""
    return f"≤ {SMALLEST_P:g}" if value <= SMALLEST_P else f"{value:.{DIGITS}f}"


def _pairs(
    files: Sequence[Path], systems: Sequence[str]
) -> Iterator[tuple[Path, Group, list[tuple[Line, Line]]]]:
    """File, group, and pairs of its systems: all, the better one first, or those of two names."""
    groups = [(path, each) for path in files for each in group(read_results(path))]
    if not groups:
        raise UserError(f"{files[0]}: no results; diet-mt evaluate adds them")
    need_known("system", systems, (line.system for _, each in groups for line in each.lines))
    compared = False
    for path, each in groups:
        pairs = list(combinations(each.lines, 2))
        if systems:
            first, second = ([line for line in each.lines if line.system == n] for n in systems)
            pairs = [(one, other) for one in first for other in second if one is not other]
        compared |= bool(pairs)
        yield path, each, pairs
    if not compared:
        needed = " and ".join(systems) or "two systems"
        print(f"nothing to compare: that needs {needed} under the same conditions")


def compare_files(files: Sequence[Path], systems: Sequence[str] = ()) -> None:
    """Prints a line for each pair of systems. ``systems``: A and B, for A against B alone."""
    counts = read_sentences(files)
    for path, each, pairs in _pairs(files, systems):
        if not pairs:
            continue
        table = resample(each.lines, counts)  # once for a group
        for first, second in pairs:
            difference, half, p = table.difference(first, second)
            print(
                f"{path}\t{each.conditions.test_set}\t{first.name}\tto {second.name}"
                f"\t{round(difference, 2) + 0.0:+.2f} ± {half:.2f} BLEU\tp {p_text(p)}"
                f"\tseeds {len(first.results)} and {len(second.results)}",
                flush=True,
            )


def show_sentences(
    files: Sequence[Path], systems: Sequence[str], count: int, references: Sequence[Path]
) -> None:
    """Prints the sentences on which the first seeds of two systems differ most in sentence BLEU."""
    given, counts = {sha256(path): path for path in references}, read_sentences(files)
    for path, each, pairs in _pairs(files, systems):
        for rows in ([line.results[0] for line in pair] for pair in pairs):
            reference = given.get(rows[0].references_sha256)
            source = reference and source_of(reference, rows[0].direction)
            known = {"source": source, "reference": reference}
            texts = {name: list(read_lines(file)) for name, file in known.items() if file}
            texts |= {f"{r.system}.{r.seed}": read_hypotheses(path.parent, r) for r in rows}
            own, other = (sentence_bleu(counts.statistics(row)) for row in rows)
            gaps = [a - b for a, b in zip(own, other, strict=True)]
            for n in sorted(range(len(gaps)), key=lambda n: -abs(gaps[n]))[:count]:
                print(f"{path}\t{each.conditions.test_set}\tsentence {n + 1}\t{gaps[n]:+.1f} BLEU")
                for name, lines in texts.items():
                    print(f"  {name}\t{printable(lines[n])}")


def sentence_bleu(statistics: Floats) -> list[float]:
    """BLEU of each sentence, of its statistics (N, 10), with the orders that it has n-grams of."""
    return [
        BLEU.compute_bleu(
            row[2 : 2 + ORDERS], row[2 + ORDERS :], row[0], row[1], "exp", effective_order=True
        ).score
        for row in statistics.astype(int).tolist()
    ]
