"""Ranked groups of comparable results, with p-values, clusters and the paper's scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist, median

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

LEVEL = 0.05  # of significance
quantile = NormalDist().inv_cdf
DETECTABLE = 1 + quantile(0.8) / quantile(0.975)  # times half of a 95 % interval, at 80 % power


@dataclass(frozen=True)
class Standing:
    """A system in a group: measured, published, or both. BLEU is from 0 to 100."""

    name: str
    line: Line | None = None
    gain: float | None = None  # BLEU minus that of the baseline
    half_width: float | None = None  # of the 95 % interval of BLEU
    p_text: str | None = None  # p-value of the gain, Holm-corrected for all systems of the group
    cluster: int | None = None  # 1: the best
    published: float | None = None  # the paper's BLEU
    published_gain: float | None = None  # the paper's BLEU minus that of its baseline

    @property
    def family(self) -> str:
        """Key of ``FAMILIES``: where positions enter."""
        return family_of(self.line.results[0].encoding if self.line else self.name)


@dataclass(frozen=True)
class Section:
    """A group as displayed: measured systems, best first, then systems only in the paper."""

    group: Group
    standings: tuple[Standing, ...]
    tests: Resampled  # of all systems of the group, displayed or not
    has_seeds: bool  # any of these systems has several seeds

    @property
    def detectable(self) -> float | None:
        """Smallest true difference to the baseline that is significant (uncorrected) with a
        probability of 80 %, on the median of the systems; None without several seeds.
        """
        baseline = self.group.baseline
        others = [line for line in self.tests.lines if line != baseline]
        if not (baseline and others and self.has_seeds):
            return None
        return DETECTABLE * median(self.tests.difference(each, baseline)[1] for each in others)


def section_of(each: Group, counts: Sentences, systems: Sequence[str] = ()) -> Section:
    """The ranked section of a group; ``systems``: those displayed (default: all).

    Clusters and corrections of p-values are of all measured systems.
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
        for line, cluster in zip(each.lines, _clusters(each.lines, tests), strict=True)
        if line in lines
    ]
    standings += [
        Standing(f"{system} (not measured)", published=value, published_gain=gain)
        for system, (value, gain) in paper.items()
        if system not in matched.values() and (system in systems or not systems)
    ]
    has_seeds = any(len(line.results) > 1 for line in each.lines)
    return Section(replace(each, lines=lines), tuple(standings), tests, has_seeds)


def _p_values(each: Group, tests: Resampled) -> dict[str, str]:
    """Name of a system -> Holm-corrected p-value of its gain, as text."""
    if each.baseline is None:
        return {}
    others = [line for line in each.lines if line != each.baseline]
    raw = [round(tests.p(line, each.baseline), 6) for line in others]
    return {
        line.name: f"{'≤ ' if p <= SMALLEST_P else ''}{value:.{DIGITS}f}"
        for line, p, value in zip(others, raw, holm(raw), strict=True)
    }


def _clusters(lines: Sequence[Line], tests: Resampled) -> list[int | None]:
    """The cluster of each system, best first; None for a single system.

    A cluster begins where each system above is better than each system below with p ≤ LEVEL, Holm-
    corrected for all pairs, so systems of one cluster may differ significantly. More than 32
    systems are one cluster: the smallest p-value, times the number of pairs, is above LEVEL.
    """
    if len(lines) < 2:
        return [None] * len(lines)
    pairs = list(combinations(range(len(lines)), 2))
    corrected = holm([tests.p(lines[a], lines[b]) for a, b in pairs])
    cluster, clusters = 1, list[int | None]()
    for place in range(len(lines)):
        across = [p for (a, b), p in zip(pairs, corrected, strict=True) if a < place <= b]
        cluster += place > 0 and max(across) <= LEVEL
        clusters.append(cluster)
    return clusters


def read_sections(
    files: Sequence[Path],
    systems: Sequence[str] = (),
    directions: Sequence[str] = (),
    test_sets: Sequence[str] = (),
) -> tuple[list[Section], list[TaskResult], Sentences]:
    """Sections, by decreasing number of systems; results of tasks; counts of sentences.

    ``systems``, ``directions``, ``test_sets``: filters; an empty one accepts all. Raises
    :class:`UserError` if there are no results.
    """
    of_tasks = [path for path in files if _is_of_tasks(path)]
    of_translation = [path for path in files if path not in of_tasks]
    results = [row for path in of_translation for row in read_results(path)]
    tasks = [row for path in of_tasks for row in read_task_results(path)]
    if not results and not tasks:
        raise UserError("no results in these files; diet-mt evaluate and predict add them")
    known = {row.system: row.system.replace("-", "_") for row in (*results, *tasks)}
    # Rows of tasks may spell ``diet_rel`` as ``diet-rel``.
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
    """Whether the first row of a file is a result of a task; False for invalid or empty files."""
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
    """Groups with any of these systems, directions and test sets; an empty filter accepts all."""
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
