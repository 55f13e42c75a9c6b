"""What a leaderboard says of each system: ours, the paper's, and the difference to the baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..evaluation.comparisons import DIGITS, Comparison, Key, key_of, smallest_p
from ..evaluation.groups import Group, Line, encoding_of
from ..evaluation.resampling import holm
from .published import Figure, figures

LEVEL = 0.05  # of a p-value that separates two systems

Known = Mapping[Key, Comparison]


@dataclass(frozen=True)
class Standing:
    """One system in one group: measured, published, or both."""

    name: str
    line: Line | None = None
    gain: float | None = None  # BLEU above the baseline
    comparison: Comparison | None = None  # with the others; None without sentence counts
    p_value: float | None = None  # of the gain, corrected for the number of systems of the group
    p_text: str = ""  # the same as it is read
    cluster: int | None = None  # from 1, the best
    published: Figure | None = None

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % interval of BLEU; over sentences alone where nothing was compared."""
        if self.comparison:
            return self.comparison.bleu_ci
        return self.line.half_width if self.line else None

    def p_to(self, other: Standing) -> float | None:
        """The p-value of the difference of two measured systems; None where it is not known."""
        if self.comparison is None or other.line is None:
            return None
        return self.comparison.p_to(other.line.results)


@dataclass(frozen=True)
class Section:
    """A group as it is shown: measured systems best first, then those only the paper has.

    ``has_seeds``: whether a system of the group has several, one that was not asked for, too: what
    is known of the chance of a seed, all share. ``speeds``: the page that has some, if there is
    one.
    """

    group: Group
    standings: tuple[Standing, ...]
    has_seeds: bool
    speeds: str = ""

    def without(self, names: Collection[str]) -> Section:
        """The same table, less these."""
        kept = [each for each in self.standings if each.name not in names]
        return replace(self, standings=in_clusters(kept))


def section_of(
    group: Group, known: Known, systems: Sequence[str] = (), speeds: str = ""
) -> Section:
    """``systems``: if any, no others are shown, and clusters are of these alone; p-values are
    corrected for all that were measured.
    """

    def wanted(system: str) -> bool:
        return not systems or system in systems

    paper = figures(group.conditions)
    p_values = _p_values(group, known)
    standings = []
    for line in group.lines:
        p_value, p_as_text = p_values.get(line.name, (None, ""))
        figure = paper.get(line.system)
        standings.append(
            Standing(
                name=line.name,
                line=line,
                gain=group.gain(line),
                comparison=known.get(key_of(line.results)),
                p_value=p_value,
                p_text=p_as_text,
                published=figure if figure and figure.is_of(encoding_of(line.results[0])) else None,
            )
        )
    known_here = {each.line.system for each in standings if each.line and each.published}
    shown = [each for each in standings if each.line and wanted(each.line.system)]
    for system, figure in paper.items():
        if system not in known_here and wanted(system):
            shown.append(Standing(name=f"{system} (not measured)", published=figure))
    lines = tuple(line for line in group.lines if wanted(line.system))
    has_seeds = any(line.several_seeds for line in group.lines)
    return Section(replace(group, lines=lines), in_clusters(shown), has_seeds, speeds)


def _p_values(group: Group, known: Known) -> dict[str, tuple[float, str]]:
    """Of the difference to the baseline, corrected, and as text, by the names of the lines that
    were compared with it. One that was not counts as 1.
    """
    others = [line for line in group.lines if line != group.baseline]
    compared = [known.get(key_of(line.results)) for line in others]
    raw = [
        each.p_to(group.baseline.results) if each and group.baseline else None for each in compared
    ]
    corrected = holm([1.0 if p is None else p for p in raw])
    found = {}
    for line, each, p, value in zip(others, compared, raw, corrected, strict=True):
        if each is not None and p is not None:
            sign = "≤ " if p <= smallest_p(each.signature) else ""
            found[line.name] = value, f"{sign}{value:.{DIGITS}f}"
    return found


def in_clusters(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """The same, of which the measured ones, best first, have clusters as the WMT conferences form
    them.

    A new one begins where every system above is better than every system below with p ≤ LEVEL; so
    neighbours in one cluster may differ, but no boundary can be put between them. None for all
    where a pair was not compared, or there is one system.
    """
    measured = [each for each in standings if each.line]
    p = [[one.p_to(other) for other in measured] for one in measured]
    found: list[int | None] = []
    cluster = 1
    for place in range(len(measured)):
        across = [value for above in p[:place] for value in above[place:]]
        if len(measured) == 1 or None in across:
            found = [None] * len(measured)
            break
        cluster += place > 0 and all(value is not None and value <= LEVEL for value in across)
        found.append(cluster)
    numbers = iter(found)
    return tuple(replace(each, cluster=next(numbers) if each.line else None) for each in standings)
