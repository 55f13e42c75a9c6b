"""The part of a leaderboard that was asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from ..errors import UserError
from ..evaluation.groups import Group

# What can be asked for -> what a group has of it.
_HAS: Mapping[str, Callable[[Group], set[str]]] = {
    "direction": lambda group: {group.conditions.direction},
    "test set": lambda group: {group.conditions.test_set},
    "system": lambda group: {line.system for line in group.lines},
}


def select(
    groups: Sequence[Group],
    *,
    directions: Sequence[str] = (),
    test_sets: Sequence[str] = (),
    systems: Sequence[str] = (),
) -> list[Group]:
    """Groups of these directions and test sets, with the lines of these systems; empty: all.

    Differences to the baseline stay what they are, also where the baseline is left out. Raises
    UserError, naming what there is, for a value that no result has and where nothing is left.
    """
    wanted = {"direction": directions, "test set": test_sets, "system": systems}
    for what, values in wanted.items():
        there_is = set().union(*(_HAS[what](group) for group in groups))
        for value in values:
            if value not in there_is:
                raise UserError(f"no result with {what} '{value}'; there is {_list(there_is)}")
    left = [
        group
        for group in groups
        if all(not values or _HAS[what](group) & set(values) for what, values in wanted.items())
    ]
    if groups and not left:
        asked = ", ".join(f"{what} {_list(values)}" for what, values in wanted.items() if values)
        there_are = "; ".join(f"{g.conditions.heading}: {_list(_HAS['system'](g))}" for g in groups)
        raise UserError(f"no result with {asked} at once; there is {there_are}")
    return [_with(group, systems) for group in left]


def _with(group: Group, systems: Sequence[str]) -> Group:
    lines = tuple(line for line in group.lines if not systems or line.system in systems)
    return dataclasses.replace(group, lines=lines)


def _list(values: set[str] | Sequence[str]) -> str:
    return ", ".join(sorted(values))
