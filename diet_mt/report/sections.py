"""Groups of comparable results, ranked, with p-values, clusters and the paper's scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..evaluation.groups import BASELINE, Group, Line, group, positions_in
from ..evaluation.hypotheses import Sentences, read_sentences
from ..evaluation.records import Result, TaskResult, read_results, read_task_results
from ..evaluation.scores import holm
from ..evaluation.significance import DIGITS, SMALLEST_P, Resampled, resampled_group
from ..system.errors import UserError
from ..system.files import raw_lines
from ..system.options import need_known
from .published import published_bleu
from .style import family_of

LEVEL = 0.05  # significance level of clusters

# Filter -> its values in a group.
_VALUES: Mapping[str, Callable[[Group], set[str]]] = {
    "direction": lambda group: {group.conditions.direction},
    "test set": lambda group: {group.conditions.test_set},
    "system": lambda group: {line.system for line in group.lines},
}
# Filter -> wanted values; none: all.
Wanted = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Standing:
    """One system in one group: measured, published, or both. BLEU from 0 to 100."""

    name: str
    line: Line | None = None
    gain: float | None = None  # BLEU above the baseline
    half_width: float | None = None  # of BLEU; over sentences alone without sentence counts
    p_value: float | None = None  # of the gain, corrected for the number of systems of the group
    p_text: str | None = None
    cluster: int | None = None  # 1: the best
    published: float | None = None  # the paper's BLEU
    published_gain: float | None = None  # over the paper's own baseline

    @property
    def family(self) -> str:
        """Where its positions enter: a key of ``FAMILIES``."""
        return family_of(self.line.results[0].encoding if self.line else self.name)


@dataclass(frozen=True)
class Section:
    """A group as shown: measured systems best first, then systems of the paper alone.

    ``tests``: resamples of all counted systems of the group, shown or not; ``has_seeds``: whether
    any of them has several seeds.
    """

    group: Group
    standings: tuple[Standing, ...]
    tests: Resampled | None
    has_seeds: bool

    @property
    def measured(self) -> list[tuple[Standing, Line]]:
        return [(each, each.line) for each in self.standings if each.line]

    def without(self, names: Collection[str]) -> Section:
        """The section without these systems."""
        standings = [each for each in self.standings if each.name not in names]
        return replace(self, standings=in_clusters(standings, self.tests))


def section_of(each: Group, counts: Sentences, systems: Sequence[str] = ()) -> Section:
    """A group, ranked; ``systems``: those shown (default all).

    Clusters are of the systems shown; p-values are corrected for all measured ones.
    """
    tests = resampled_group(each, counts)
    rows = published_bleu(each.conditions)
    bleu = {system: row.scores[each.conditions.direction] for system, row in rows.items()}
    paper = {system: (value, value - bleu[BASELINE]) for system, value in bleu.items()}
    p_values = _p_values(each, tests)
    standings, absent = [], dict(paper)
    for line in each.lines:
        row = rows.get(line.system)
        same_model = row is not None and row.is_of(line.system, positions_in(line.results[0]))
        published = paper[line.system] if same_model else (None, None)
        if same_model:
            absent.pop(line.system, None)
        counted = tests is not None and line in tests.lines
        half = tests.half_width(line) if tests and counted else line.half_width
        p, text = p_values.get(line.name, (None, None))
        gain = each.gain(line)
        standings.append(Standing(line.name, line, gain, half, p, text, None, *published))
    shown = [own for own in standings if own.line and (own.line.system in systems or not systems)]
    lines = tuple(own.line for own in shown if own.line)
    for system, (value, gain) in absent.items():
        if system in systems or not systems:
            name = f"{system} (not measured)"
            shown.append(Standing(name, published=value, published_gain=gain))
    has_seeds = any(line.several_seeds for line in each.lines)
    return Section(replace(each, lines=lines), in_clusters(shown, tests), tests, has_seeds)


def _p_values(each: Group, tests: Resampled | None) -> dict[str, tuple[float, str]]:
    """Line -> Holm's p-value of its gain, as number and text; uncounted systems count as p = 1."""
    if tests is None or each.baseline is None or each.baseline not in tests.lines:
        return {}
    others = [line for line in each.lines if line != each.baseline]
    raw = [
        round(tests.p(line, each.baseline), 6) if line in tests.lines else 1.0 for line in others
    ]
    return {
        line.name: (value, f"{'≤ ' if p <= SMALLEST_P else ''}{value:.{DIGITS}f}")
        for line, p, value in zip(others, raw, holm(raw), strict=True)
        if line in tests.lines
    }


def in_clusters(standings: Sequence[Standing], tests: Resampled | None) -> tuple[Standing, ...]:
    """Standings, best first, with clusters as the WMT conferences form them.

    A cluster begins where every system above is better than every system below with p ≤ LEVEL, so
    systems of one cluster may differ. No clusters where a system was not tested, or is alone.
    """
    lines = [each.line for each in standings if each.line]
    if tests is None or len(lines) < 2 or not set(lines) <= set(tests.lines):
        return tuple(replace(each, cluster=None) for each in standings)
    p = {(a, b): tests.p(a, b) for n, a in enumerate(lines) for b in lines[n + 1 :]}
    cluster, clusters = 1, []
    for place in range(len(lines)):
        across = [p[a, b] for a in lines[:place] for b in lines[place:]]
        cluster += place > 0 and max(across) <= LEVEL
        clusters.append(cluster)
    numbers = iter(clusters)
    return tuple(replace(each, cluster=next(numbers) if each.line else None) for each in standings)


def read_sections(
    files: Sequence[Path], wanted: Wanted
) -> tuple[list[Section], list[TaskResult], Sentences]:
    """Translation results, sections of most systems first; task results; sentence counts.

    Raises UserError where there is nothing to show.
    """
    of_tasks = [path for path in files if is_of_tasks(path)]
    of_translation = [path for path in files if path not in of_tasks]
    results = [row for path in of_translation for row in read_results(path)]
    tasks = [row for path in of_tasks for row in read_task_results(path)]
    if not results and not tasks:
        raise UserError("no results in these files; diet-mt evaluate and predict add them")
    systems = _spelled(wanted.get("system", ()), results, tasks)
    translated = [name for name in systems if any(row.system == name for row in results)]
    counts = read_sentences(of_translation)
    groups = []
    if results and bool(translated) == bool(systems):
        groups = select(group(results), {**wanted, "system": translated})
    sections = [section_of(each, counts, systems) for each in groups]
    sections.sort(key=lambda section: -len(section.group.lines))
    return sections, [each for each in tasks if not systems or each.system in systems], counts


def is_of_tasks(path: Path) -> bool:
    """Whether the first row of a file is that of a task; False for no row."""
    try:
        first = json.loads(next(raw_lines(path), b"{}"))
    except (ValueError, RecursionError):  # UserError is a ValueError
        return False
    return isinstance(first, dict) and "task" in first


def _spelled(
    systems: Sequence[str], results: Sequence[Result], tasks: Sequence[TaskResult]
) -> list[str]:
    """``systems`` as the rows spell them: ``diet_rel`` is ``diet-rel`` in rows of tasks."""
    known = [row.system for row in results] + [row.system for row in tasks]
    folded = {name.replace("-", "_") for name in known}
    need_known("system", (s for s in systems if s.replace("-", "_") not in folded), known)
    names = {name.replace("-", "_") for name in systems}
    return [name for name in dict.fromkeys(known) if name.replace("-", "_") in names]


def select(groups: Sequence[Group], wanted: Wanted) -> list[Group]:
    """Groups whose properties match every filter."""
    for what, values in wanted.items():
        need_known(what, values, set().union(*(_VALUES[what](each) for each in groups)))
    left = [
        each
        for each in groups
        if all(not values or _VALUES[what](each) & set(values) for what, values in wanted.items())
    ]
    if not left:
        headings = "; ".join(dict.fromkeys(each.conditions.heading for each in groups))
        raise UserError(f"no result matches all filters; available are {headings}")
    return left
