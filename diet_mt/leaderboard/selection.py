"""The part of a leaderboard that was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..blocks import Block
from ..command_line import need_known
from ..errors import UserError
from ..evaluation.comparisons import compare
from ..evaluation.groups import Group, group
from ..evaluation.kept import kept_hypotheses
from ..evaluation.records import Result, read_results
from ..evaluation.sentences import read_sentences
from ..evaluation.task_records import read_task_results
from ..files import raw_lines
from .standings import Section, section_of
from .task_boards import task_board

# What can be asked for -> what a group has of it.
_HAS: Mapping[str, Callable[[Group], set[str]]] = {
    "direction": lambda group: {group.conditions.direction},
    "test set": lambda group: {group.conditions.test_set},
    "system": lambda group: {line.system for line in group.lines},
}
# What is asked for -> its values; none: all.
Wanted = Mapping[str, Sequence[str]]


def asked_for(
    files: Sequence[Path], wanted: Wanted, *, check: bool
) -> tuple[list[Section], list[Block]]:
    """Sections of the rows of translation, those of the most systems first, and a board of those of
    tasks.

    ``check``: the kept hypotheses, too. Raises UserError where there is nothing to show.
    """
    with_tasks = [path for path in files if of_tasks(path)]
    results: list[Result] = []
    for path in files:
        if path not in with_tasks:
            results += (rows := read_results(path))
            for row in rows if check else ():
                kept_hypotheses(path.parent, row)
    tasks = [row for path in with_tasks for row in read_task_results(path)]
    if not results and not tasks:
        raise UserError("the files hold no results; diet-mt evaluate and predict add them")
    translated = [result.system for result in results]
    known = [*translated, *(result.system for result in tasks)]
    systems = _spelled(wanted.get("system", ()), known)
    own = [name for name in systems if name in translated]
    groups = group(results)
    if groups and bool(own) == bool(systems):
        groups = sorted(
            select(groups, {**wanted, "system": own}), key=lambda each: -len(each.lines)
        )
    else:
        groups = []
    tasks = [each for each in tasks if not systems or each.system in systems]
    blocks = task_board(tasks)
    if tasks and not blocks:
        raise UserError("the results are of no split that a table shows (dev sets, test_LANG)")
    # Where diet-mt bench speed keeps its tables.
    beside = (path.with_name("benchmark.md") for path in files)
    page = next((f"{path.name}, beside the rows" for path in beside if path.exists()), "")
    kept = read_sentences(path for path in files if path not in with_tasks)
    tests = compare(groups, kept)
    return [section_of(each, tests, systems, page) for each in groups], blocks


def _spelled(systems: Sequence[str], known: Sequence[str]) -> list[str]:
    """``systems`` in every spelling of the rows: those of tasks have ``diet-rel`` for ``diet_rel``.

    Raises UserError for one that is not known.
    """
    folded = {name.replace("-", "_") for name in known}
    need_known("system", (s for s in systems if s.replace("-", "_") not in folded), known)
    wanted = {name.replace("-", "_") for name in systems}
    return [name for name in dict.fromkeys(known) if name.replace("-", "_") in wanted]


def of_tasks(path: Path) -> bool:
    """Whether the first row of a file is one of a task. What is no row is told by who reads it."""
    try:
        first = json.loads(next(raw_lines(path), b"{}"))
    except (ValueError, RecursionError):  # UserError is a ValueError
        return False
    return isinstance(first, dict) and "task" in first


def select(groups: Sequence[Group], wanted: Wanted) -> list[Group]:
    """Groups of these directions and test sets that have one of these systems; empty: all.

    Groups stay whole: differences are to the baseline, also where ``section_of`` leaves it out.
    Raises UserError, naming what there is, for a value that no result has and where nothing is
    left.
    """
    for what, values in wanted.items():
        need_known(what, values, set().union(*(_HAS[what](group) for group in groups)))
    left = [
        group
        for group in groups
        if all(not values or _HAS[what](group) & set(values) for what, values in wanted.items())
    ]
    if not left:
        asked = ", ".join(f"{what} {_list(values)}" for what, values in wanted.items() if values)
        there_are = "; ".join(f"{g.conditions.heading}: {_list(_HAS['system'](g))}" for g in groups)
        raise UserError(f"no result with {asked} at once; there is {there_are}")
    return left


def _list(values: set[str] | Sequence[str]) -> str:
    return ", ".join(sorted(values))
