"""What a leaderboard says of each system: ours, the paper's, and the difference to the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..evaluation.comparisons import Comparison, Key, key_of, p_between
from ..evaluation.groups import Group, Line
from .published import Figure, figures

LEVEL = 0.05  # of a p-value that separates two systems

Known = Mapping[Key, Comparison]


@dataclass(frozen=True)
class Standing:
    """One system in one group: measured, published, or both."""

    name: str
    line: Line | None = None
    gain: float | None = None  # BLEU above the baseline
    comparison: Comparison | None = None  # with the others; None where there is none yet
    p_value: float | None = None  # of the gain
    cluster: int | None = None  # from 1, the best
    published: Figure | None = None

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % interval of BLEU; over sentences alone where nothing was compared."""
        if self.comparison:
            return self.comparison.bleu_ci
        return self.line.half_width if self.line else None

    @property
    def p_text(self) -> str:
        """The p-value as it is read; empty where it is not known."""
        if self.comparison is None or self.p_value is None:
            return ""
        return self.comparison.p_text(self.p_value)


@dataclass(frozen=True)
class Section:
    """A group as it is shown: measured systems best first, then those only the paper has.

    ``measured``: all, also those that were not asked for. ``speeds``: the page that has some, if
    there is one.
    """

    group: Group
    standings: tuple[Standing, ...]
    measured: tuple[Standing, ...]
    speeds: str = ""

    @property
    def has_seeds(self) -> bool:
        """Whether a system has several: what is known of the chance of a seed, all share."""
        return any(each.line and each.line.several_seeds for each in self.measured)


def section_of(
    group: Group, known: Known, systems: Sequence[str] = (), speeds: str = ""
) -> Section:
    """``systems``: if any, no others are shown. Clusters stay those of the whole group."""

    def wanted(system: str) -> bool:
        return not systems or system in systems

    paper = figures(group.conditions)
    standings = []
    for line, cluster in zip(group.lines, clusters(group.lines, known), strict=True):
        baseline = group.baseline if group.baseline != line else None
        standings.append(
            Standing(
                name=line.name,
                line=line,
                gain=group.gain(line),
                comparison=known.get(key_of(line.results)),
                p_value=p_between(known, line.results, baseline.results) if baseline else None,
                cluster=cluster,
                published=paper.get(line.system),
            )
        )
    known_here = {line.system for line in group.lines}
    shown = [each for each in standings if each.line and wanted(each.line.system)]
    for system, figure in paper.items():
        if system not in known_here and wanted(system):
            shown.append(Standing(name=f"{system} (not measured)", published=figure))
    lines = tuple(line for line in group.lines if wanted(line.system))
    return Section(replace(group, lines=lines), tuple(shown), tuple(standings), speeds)


def clusters(lines: Sequence[Line], known: Known) -> list[int | None]:
    """The cluster of each line, best first, as the WMT conferences form them.

    A new one begins where every line above is better than every line below with p ≤ LEVEL; so
    neighbours in one cluster may differ, but no boundary can be put between them. None for all
    where a pair was not compared.
    """
    p = [[p_between(known, one.results, other.results) for other in lines] for one in lines]
    found: list[int | None] = []
    for place in range(len(lines)):
        across = [p[above][below] for above in range(place) for below in range(place, len(lines))]
        if None in across:
            return [None] * len(lines)
        is_boundary = all(each is not None and each <= LEVEL for each in across)
        last = found[-1] if found else 0
        found.append((last or 0) + is_boundary)
    return found if len(lines) > 1 else [None] * len(lines)
