"""Significance of differences between systems, computed from the counts of their sentences.

A system is compared with every other system of its group by the paired bootstrap of ``scores``,
over sentences and seeds.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from ..corpora.parallel import read_lines
from ..system.errors import UserError
from ..system.options import need_known
from .groups import Group, Line, group
from .hypotheses import (
    Sentences,
    by_checksum,
    read_hypotheses,
    read_sentences,
    sentence_bleu,
    source_of,
)
from .records import Result, read_results
from .scores import RESAMPLES, Floats, bleu, half_width, p_value, resampled

DIGITS = 4  # decimals of BLEU differences and p-values
SMALLEST_P = 1 / RESAMPLES


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
        value, samples = self._difference(first, second)
        return value, half_width(samples), self.p(first, second)

    def p(self, first: Line, second: Line) -> float:
        """The p-value of a difference."""
        value, samples = self._difference(first, second)
        # Equal scores or a single sentence: the resamples carry no information, so p = 1.
        no_information = round(value, DIGITS) == 0 or self.sentences == 1
        return 1.0 if no_information else p_value(samples, value)

    def _difference(self, first: Line, second: Line) -> tuple[float, Floats]:
        one, other = self.lines.index(first), self.lines.index(second)
        return self.scores[one] - self.scores[other], self.samples[one] - self.samples[other]


def resample(lines: Sequence[Line], statistics: Sequence[Sequence[Floats]]) -> Resampled:
    """Resamples systems; ``statistics``: (sentences, 10) of each seed of each line."""
    scores = [[float(bleu(each.sum(axis=0))) for each in seeds] for seeds in statistics]
    return Resampled(
        lines=tuple(lines),
        scores=tuple(sum(each) / len(each) for each in scores),
        samples=resampled(statistics, [_stream(line.results) for line in lines]),
        sentences=len(statistics[0][0]),
    )


def _stream(seeds: Sequence[Result]) -> int:
    """The number that seeds the draws of a system: of the checksums of its hypotheses."""
    digests = " ".join(sorted(each.hypotheses_sha256 for each in seeds))
    return int(hashlib.sha256(digests.encode()).hexdigest()[:12], 16)


def resampled_group(group: Group, counts: Sentences) -> Resampled | None:
    """The systems of a group whose sentences are all counted; None without any."""
    lines = [line for line in group.lines if counts.is_counted(line.results)]
    statistics = [[counts.statistics(result) for result in line.results] for line in lines]
    return resample(lines, statistics) if lines else None


def p_text(value: float) -> str:
    """A p-value as text: ``≤ 0.0001`` for the smallest, (0 + 1) / (10,000 + 1)."""
    return f"≤ {SMALLEST_P:g}" if value <= SMALLEST_P else f"{value:.{DIGITS}f}"


def compare_files(files: Sequence[Path], systems: Sequence[str] | None = None) -> None:
    """Prints a line for each pair of systems, the better one first.

    ``systems``: A and B, for A against B alone. Raises UserError for an unknown system, and where
    the sentences of no pair are counted.
    """
    groups = {path: group(read_results(path)) for path in files}
    if empty := next((path for path, own in groups.items() if not own), None):
        raise UserError(f"{empty}: no results; diet-mt evaluate adds them")
    every = [each for own in groups.values() for each in own]
    need_known("system", systems or (), (line.system for each in every for line in each.lines))
    compared = uncounted = 0
    for path, own in groups.items():
        counts = read_sentences([path])
        pairs = [(each, pair) for each in own for pair in _pairs(each, systems)]
        if not pairs:
            needed = " and ".join(systems or ("two systems",))
            print(f"{path}\tnothing to compare: that needs {needed} under the same conditions")
        lines = [line for _, pair in pairs for line in pair]
        if missing := {line.name: 0 for line in lines if not counts.is_counted(line.results)}:
            message = f"{path}: no sentence counts of {', '.join(missing)}; give --references"
            print(f"warning: {message}", file=sys.stderr)
        compared_groups = {id(each): each for each, _ in pairs}  # each is resampled once
        tables = {key: resampled_group(each, counts) for key, each in compared_groups.items()}
        for each, (first, second) in pairs:
            table = tables[id(each)]
            if table is None or not {first, second} <= set(table.lines):
                uncounted += 1
                continue
            compared += 1
            difference, half, p = table.difference(first, second)
            print(
                f"{path}\t{first.name}\tto {second.name}"
                f"\t{round(difference, 2) + 0.0:+.2f} ± {half:.2f} BLEU\tp {p_text(p)}"
                f"\tseeds {len(first.results)} and {len(second.results)}",
                flush=True,
            )
    if uncounted and not compared:
        raise UserError("no sentence counts of any pair; give --references, the raw test sets")


def _pairs(each: Group, systems: Sequence[str] | None) -> Iterator[tuple[Line, Line]]:
    """Pairs of systems, the better one first unless two were given."""
    if not systems:
        yield from combinations(each.lines, 2)
        return
    first, second = ([line for line in each.lines if line.system == name] for name in systems)
    yield from ((one, other) for one in first for other in second if one is not other)


def show_sentences(
    files: Sequence[Path], systems: Sequence[str], count: int, references: Sequence[Path]
) -> None:
    """Prints the sentences on which the first seeds of two systems differ most in sentence BLEU,
    with sources and references where these are given.
    """
    given = by_checksum(references)
    for path in files:
        counts, groups = read_sentences([path]), group(read_results(path))
        for pair in (pair for each in groups for pair in _pairs(each, systems)):
            rows = [line.results[0] for line in pair]
            if not counts.is_counted(rows):
                continue
            texts: dict[str, Sequence[str]] = {}
            reference, _ = given.get(rows[0].references_sha256, (None, None))
            if reference and (source := source_of(reference, rows[0])):
                texts["source"] = list(read_lines(source))
            if reference:
                texts["reference"] = list(read_lines(reference))
            texts |= {f"{r.system}.{r.seed}": read_hypotheses(path.parent, r) for r in rows}
            own, other = (sentence_bleu(counts.statistics(row)) for row in rows)
            gaps = [a - b for a, b in zip(own, other, strict=True)]
            for n in sorted(range(len(gaps)), key=lambda n: -abs(gaps[n]))[:count]:
                print(f"{path}\tsentence {n + 1}\t{gaps[n]:+.1f} BLEU")
                for name, lines in texts.items():
                    print(f"  {name}\t{lines[n]}")
