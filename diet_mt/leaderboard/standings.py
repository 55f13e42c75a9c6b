"""What a leaderboard says of each system: ours, the paper's, and the difference to the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..evaluation.comparisons import Comparison, Key, key_of
from ..evaluation.groups import Group, Line
from .published import Figure, figures


@dataclass(frozen=True)
class Standing:
    """One system in one group: measured, published, or both."""

    name: str
    line: Line | None = None
    gain: float | None = None  # BLEU above the baseline
    # With the baseline, in the order of the seeds; None where there is none yet.
    comparisons: tuple[Comparison | None, ...] = ()
    published: Figure | None = None


@dataclass(frozen=True)
class Section:
    """A group as it is shown: measured systems best first, then those only the paper has."""

    group: Group
    standings: tuple[Standing, ...]


def section_of(
    group: Group, comparisons: Mapping[Key, Comparison], systems: Sequence[str] = ()
) -> Section:
    """``systems``: if any, no others are taken from the paper."""
    paper = figures(group.conditions)
    standings = []
    for line in group.lines:
        pairs = [(result, group.partner(result)) for result in line.results]
        standings.append(
            Standing(
                name=line.name,
                line=line,
                gain=group.gain(line),
                comparisons=tuple(
                    comparisons.get(key_of(result, other)) for result, other in pairs if other
                ),
                published=paper.get(line.system),
            )
        )
    measured = {line.system for line in group.lines}
    for system, figure in paper.items():
        if system not in measured and (not systems or system in systems):
            standings.append(Standing(name=f"{system} (not measured)", published=figure))
    return Section(group, tuple(standings))
