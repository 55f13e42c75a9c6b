"""Sections of made-up rows with given p-values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from diet_mt.evaluation.groups import Line, group
from diet_mt.evaluation.hypotheses import Sentences
from diet_mt.evaluation.records import Result
from diet_mt.report import sections
from diet_mt.report.sections import Section, section_of

NOTHING = Sentences({}, {})


class Tests:
    """Stands for resamples: p-values by the systems of a pair, in the order of the alphabet."""

    __test__ = False

    def __init__(self, lines: Sequence[Line], p: Callable[[str, str], float]) -> None:
        self.lines, self._p = tuple(lines), p

    def p(self, first: Line, second: Line) -> float:
        return self._p(*sorted((first.system, second.system)))

    def half_width(self, line: Line) -> float:
        return 0.75


def section(
    rows: Sequence[Result],
    p: Callable[[str, str], float] | None = None,
    systems: Sequence[str] = (),
    uncounted: Sequence[str] = (),
) -> Section:
    """The section of one group; ``p``: p-values of pairs, of all systems that are counted."""
    (each,) = group(rows)
    with pytest.MonkeyPatch.context() as patch:
        lines = [line for line in each.lines if line.system not in uncounted]
        patch.setattr(sections, "resampled_group", lambda *_: Tests(lines, p) if p else None)
        return section_of(each, NOTHING, systems)
