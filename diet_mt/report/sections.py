"""Groups of comparable results, ranked, with p-values, clusters and the paper's scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..evaluation.groups import BASELINE, Group, Line, group, positions_in
from ..evaluation.hypotheses import Sentences, read_sentences
from ..evaluation.records import TaskResult, read_results, read_task_results
from ..evaluation.scores import holm
from ..evaluation.significance import DIGITS, SMALLEST_P, Resampled, resample
from ..system.errors import UserError
from ..system.files import raw_lines
from ..system.options import need_known
from .published import bleu_of, published_bleu
from .style import family_of

LEVEL = 0.05  # significance level of clusters


@dataclass(frozen=True)
class Standing:
    """One system in one group: measured, published, or both. BLEU from 0 to 100."""

    name: str
    line: Line | None = None
    gain: float | None = None  # BLEU above the baseline
    half_width: float | None = None  # of BLEU
    p_text: str | None = None  # of the gain, corrected for the number of systems of the group
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

    ``tests``: resamples of all systems of the group, shown or not; ``has_seeds``: whether any of
    them has several seeds.
    """

    group: Group
    standings: tuple[Standing, ...]
    tests: Resampled
    has_seeds: bool


def section_of(each: Group, counts: Sentences, systems: Sequence[str] = ()) -> Section:
    """A group, ranked; ``systems``: those shown (default all).

    Clusters are of the systems shown; p-values are corrected for all measured ones.
    """
    tests, baseline = resample(each.lines, counts), each.baseline
    p_values, rows = _p_values(each, tests), published_bleu(each.conditions)
    bleu = bleu_of(each.conditions.direction)
    paper = {system: (bleu[system], bleu[system] - bleu[BASELINE]) for system in rows}
    matched = {
        line.name: line.system
        for line in each.lines
        if (row := rows.get(line.system)) and row.is_of(line.system, positions_in(line.results[0]))
    }
    lines = tuple(line for line in each.lines if line.system in systems or not systems)
    standings = [
        Standing(
            line.name,
            line,
            line.bleu - baseline.bleu if baseline else None,
            tests.half_width(line),
            p_values.get(line.name),
            cluster,
            *paper.get(matched.get(line.name, ""), ()),
        )
        for line, cluster in zip(lines, _clusters(lines, tests), strict=True)
    ]
    standings += [
        Standing(f"{system} (not measured)", published=value, published_gain=gain)
        for system, (value, gain) in paper.items()
        if system not in matched.values() and (system in systems or not systems)
    ]
    has_seeds = any(len(line.results) > 1 for line in each.lines)
    return Section(replace(each, lines=lines), tuple(standings), tests, has_seeds)


def _p_values(each: Group, tests: Resampled) -> dict[str, str]:
    """Line -> Holm's p-value of its gain."""
    if each.baseline is None:
        return {}
    others = [line for line in each.lines if line != each.baseline]
    raw = [round(tests.p(line, each.baseline), 6) for line in others]
    return {
        line.name: f"{'≤ ' if p <= SMALLEST_P else ''}{value:.{DIGITS}f}"
        for line, p, value in zip(others, raw, holm(raw), strict=True)
    }


def _clusters(lines: Sequence[Line], tests: Resampled) -> list[int | None]:
    """The cluster of each line, best first, as the WMT conferences form them; None for one alone.

    A cluster begins where every system above is better than every system below with p ≤ LEVEL, so
    systems of one cluster may differ.
    """
    if len(lines) < 2:
        return [None] * len(lines)
    p = {(a, b): tests.p(a, b) for n, a in enumerate(lines) for b in lines[n + 1 :]}
    cluster, clusters = 1, list[int | None]()
    for place in range(len(lines)):
        across = [p[a, b] for a in lines[:place] for b in lines[place:]]
        cluster += place > 0 and max(across) <= LEVEL
        clusters.append(cluster)
    return clusters


def read_sections(
    files: Sequence[Path],
    systems: Sequence[str] = (),
    directions: Sequence[str] = (),
    test_sets: Sequence[str] = (),
) -> tuple[list[Section], list[TaskResult], Sentences]:
    """Translation results, sections of most systems first; task results; sentence counts."""
    of_tasks = [path for path in files if _is_of_tasks(path)]
    of_translation = [path for path in files if path not in of_tasks]
    results = [row for path in of_translation for row in read_results(path)]
    tasks = [row for path in of_tasks for row in read_task_results(path)]
    if not results and not tasks:
        raise UserError("no results in these files; diet-mt evaluate and predict add them")
    known = {row.system: row.system.replace("-", "_") for row in (*results, *tasks)}
    # ``diet_rel`` is ``diet-rel`` in rows of tasks.
    wanted = {name: name.replace("-", "_") for name in systems}
    need_known("system", (name for name in systems if wanted[name] not in known.values()), known)
    systems = [name for name, folded in known.items() if folded in wanted.values()]
    counts, groups = read_sentences(of_translation), group(results)
    if groups and (not systems or any(row.system in systems for row in results)):
        groups = select(groups, systems, directions, test_sets)
    else:
        groups = []
    sections = [section_of(each, counts, systems) for each in groups]
    sections.sort(key=lambda section: -len(section.group.lines))
    return sections, [each for each in tasks if not systems or each.system in systems], counts


def _is_of_tasks(path: Path) -> bool:
    """Whether the first row of a file is that of a task; False for no row."""
    try:
        first = json.loads(next(raw_lines(path), b"{}"))
    except (ValueError, RecursionError):  # UserError is a ValueError
        return False
    return isinstance(first, dict) and "task" in first


def select(
    groups: Sequence[Group],
    systems: Sequence[str],
    directions: Sequence[str],
    test_sets: Sequence[str],
) -> list[Group]:
    """Groups with any of these systems, of these directions and test sets; empty: all."""
    need_known("direction", directions, (each.conditions.direction for each in groups))
    need_known("test set", test_sets, (each.conditions.test_set for each in groups))
    selected = [
        each
        for each in groups
        if (not systems or any(line.system in systems for line in each.lines))
        and (not directions or each.conditions.direction in directions)
        and (not test_sets or each.conditions.test_set in test_sets)
    ]
    if not selected:
        headings = "; ".join(dict.fromkeys(each.conditions.heading for each in groups))
        raise UserError(f"no result matches all filters; available are {headings}")
    return selected
