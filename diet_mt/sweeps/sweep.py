"""What a sweep's file says: its runs, multiplied out, and every command, filled.

``settings`` are variables of all runs; ``runs`` is a list of mappings, each to a value or to a list
of values, which are multiplied out. Two more are known everywhere: ``recipe``, the name of the
file, and ``folder``. A command of ``prepare`` that names variables of runs is filled for every run,
and done once where that gives the same. A command of ``report`` is about all runs: it has each word
once for each of its values. Entries with the same folder and the same first command are one run:
one training, decoded in several ways.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonpath
from pathlib import Path

from ..command_line import need_known
from ..errors import UserError
from .variables import Command, Value, command, one_text, value_of

Variables = Mapping[str, Value]
Choice = Mapping[str, str]


@dataclass(frozen=True)
class Run:
    """Commands to be run one after the other; ``folder`` has their log, ``name`` is its end."""

    name: str
    folder: Path
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Sweep:
    """First ``prepare``, command by command; then ``runs``, in any order; then ``report``."""

    prepare: tuple[Command, ...]
    runs: tuple[Run, ...]
    report: tuple[Command, ...]

    @property
    def commands(self) -> Iterator[Command]:
        yield from self.prepare
        for run in self.runs:
            yield from run.commands
        yield from self.report


def sweep_of(
    content: Mapping[str, object],
    where: str,
    changes: Variables | None = None,
    choices: Sequence[Choice] = (),
) -> Sweep:
    """The sweep of a file's content.

    ``where``: the file's name, for messages; ``changes``: values in the place of those of settings,
    or of runs; ``choices``: only runs that have all values of one of these. Raises UserError where
    something is missing, unknown, or of a wrong kind.
    """
    for name in ("runs", "run", "folder"):
        if not content.get(name):
            raise UserError(f"{where}: no section {name}; not a sweep file")
    texts = {section: _texts(content, section, where) for section in ("prepare", "run", "report")}
    if not isinstance(content["folder"], str):
        raise UserError(f"{where}, folder: should be one text")
    texts["folder"] = [content["folder"]]
    settings = {
        str(name): value_of(given, f"{where}, {name}")
        for name, given in _mapping(content, "settings", where).items()
    }
    settings, points = _changed(settings, list(_points(content, where)), changes or {})
    _check_used({*(changes or {})}, [settings, *points], texts.values(), where)
    _check_systems(points, where)
    chosen = _chosen({"recipe": where, **settings}, points, choices)
    if not chosen:
        raise UserError(f"{where}, runs: a variable has no values, so there are no runs")
    folders = [one_text(texts["folder"][0], each, f"{where}, folder") for each in chosen]
    complete = [{**each, "folder": folder} for each, folder in zip(chosen, folders, strict=True)]

    def filled(section: str, variables: Variables) -> tuple[Command, ...]:
        return tuple(command(text, [variables], f"{where}, {section}") for text in texts[section])

    runs = (
        Run(name, Path(folder), filled("run", variables))
        for name, folder, variables in zip(_names(folders), folders, complete, strict=True)
    )
    prepare = [filled("prepare", each) for each in complete]
    return Sweep(
        tuple(dict.fromkeys(itertools.chain(*zip(*prepare, strict=True)))),
        tuple(_merged(runs, where)),
        tuple(command(text, complete, f"{where}, report") for text in texts["report"]),
    )


def _mapping(content: Mapping[str, object], section: str, where: str) -> Mapping[str, object]:
    found = content.get(section) or {}
    if not isinstance(found, Mapping):
        raise UserError(f"{where}, {section}: should be names and their values")
    return found


def _texts(content: Mapping[str, object], section: str, where: str) -> list[str]:
    found = content.get(section) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UserError(f"{where}, {section}: should be a list of commands")
    return found


def _points(content: Mapping[str, object], where: str) -> Iterator[dict[str, list[Value]]]:
    """The entries of ``runs``: for each variable its values."""
    entries = content["runs"]
    if not isinstance(entries, list) or not all(isinstance(each, Mapping) for each in entries):
        raise UserError(f"{where}, runs: should be a list of mappings, as in - {{seed: [1, 2]}}")
    for entry in entries:
        values = {name: each if isinstance(each, list) else [each] for name, each in entry.items()}
        yield {
            str(name): [value_of(each, f"{where}, runs, {name}") for each in several]
            for name, several in values.items()
        }


def _changed(
    settings: dict[str, Value], points: list[dict[str, list[Value]]], changes: Variables
) -> tuple[dict[str, Value], list[dict[str, list[Value]]]]:
    """With the values of ``changes``: of runs where runs have that variable, else of settings."""
    of_runs = {name for each in points for name in each}
    for name, value in changes.items():
        if name in of_runs:
            several: list[Value] = [value] if isinstance(value, str) else list(value)
            points = [{**each, name: several} if name in each else each for each in points]
        elif name in settings:
            settings = {**settings, name: value}
        else:
            need_known("variable", [name], [*settings, *of_runs], "--set")
    return settings, points


def _check_used(
    changed: set[str],
    variables: Iterable[Mapping[str, object]],
    texts: Iterable[Iterable[str]],
    where: str,
) -> None:
    """Raises UserError for a variable that was given a value, and that no command names."""
    texts = [text for section in texts for text in section]
    texts += [str(value) for each in variables for value in each.values()]
    for name in changed:
        if not any(f"{{{name}}}" in text for text in texts):
            raise UserError(f"--set: {where} makes no use of {name}")


def _check_systems(points: Iterable[Mapping[str, list[Value]]], where: str) -> None:
    if not any("system" in point for point in points):
        return
    from ..positions import COMMAND_NAMES  # torch is not needed for more

    for point in points:
        need_known("system", map(str, point.get("system", [])), COMMAND_NAMES, where)


def _chosen(
    settings: Variables, points: Iterable[Mapping[str, list[Value]]], choices: Sequence[Choice]
) -> list[dict[str, Value]]:
    """Variables of each run that was chosen. Raises UserError where a choice fits none."""
    own = [
        dict(zip(point, values, strict=True))
        for point in points
        for values in itertools.product(*point.values())
    ]
    own = [each for number, each in enumerate(own) if each not in own[:number]]

    def text(name: str, run: Variables) -> str:
        given = run.get(name)
        return one_text(given, {**settings, **run}, name) if isinstance(given, str) else str(given)

    chosen: list[dict[str, Value]] = []
    for choice in choices:
        fitting = own
        for name, value in choice.items():
            need_known("variable", [name], {each for point in own for each in point}, "--runs")
            known = {text(name, each) for each in fitting if name in each}
            need_known(name, [value], known, "--runs")
            fitting = [each for each in fitting if text(name, each) == value]
        chosen += fitting
    return [{**settings, **each} for each in own if not choices or each in chosen]


def _merged(runs: Iterable[Run], where: str) -> Iterable[Run]:
    """Runs of one folder as one, where they begin with the same command.

    Raises UserError where they do not, or are the same altogether.
    """
    found: dict[Path, Run] = {}
    for run in runs:
        first = found.setdefault(run.folder, run)
        if first is run:
            continue
        more = tuple(each for each in run.commands if each not in first.commands)
        if run.commands[0] != first.commands[0] or not more:
            raise UserError(
                f"{where}, folder: {run.folder} would be that of several runs; "
                "name all variables of a run in it"
            )
        found[run.folder] = replace(first, commands=first.commands + more)
    return found.values()


def _names(folders: Sequence[str]) -> list[str]:
    """The folders without what they all begin with."""
    above = commonpath([str(Path(folder).parent) for folder in folders])
    return [str(Path(folder).relative_to(above)) for folder in folders]
