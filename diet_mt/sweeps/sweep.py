"""What a sweep's file says: its runs, multiplied out, and every command, filled.

``settings`` are variables of all runs; ``runs`` is a list of mappings, each to a value or to a list
of values, which are multiplied out. Two more are known everywhere: ``recipe``, the name of the
file, and ``folder``. A command of ``prepare`` that names variables of runs is filled for every run,
and done once where that gives the same. A command of ``report`` is about all runs: it has each word
once for each of its values. Entries with the same folder and the same first command are one run:
one training, decoded in several ways. It has the commands that they all begin with once, and then
the others of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonpath, normpath
from pathlib import Path

from ..command_line import need_known
from ..errors import UserError
from .variables import Command, Value, command, filled, one_text, value_of

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
    every = [{"recipe": where, **settings, **each} for each in _multiplied(points)]
    if not every:
        raise UserError(f"{where}, runs: a variable has no values, so there are no runs")
    folder = texts["folder"][0]
    every = [{**each, "folder": one_text(folder, each, f"{where}, folder")} for each in every]
    complete = _chosen(every, choices)
    folders = [str(each["folder"]) for each in complete]

    def of_section(section: str, variables: Variables) -> tuple[Command, ...]:
        return tuple(command(text, [variables], f"{where}, {section}") for text in texts[section])

    runs = (
        Run(name, Path(folder), of_section("run", variables))
        for name, folder, variables in zip(
            _names(folders, f"{where}, folder"), folders, complete, strict=True
        )
    )
    prepare = [of_section("prepare", each) for each in complete]
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


def _multiplied(points: Iterable[Mapping[str, list[Value]]]) -> list[dict[str, Value]]:
    """Each combination of the values of an entry, once."""
    found: list[dict[str, Value]] = []
    for point in points:
        for values in itertools.product(*point.values()):
            run = dict(zip(point, values, strict=True))
            found += [] if run in found else [run]
    return found


def _chosen(runs: list[dict[str, Value]], choices: Sequence[Choice]) -> list[dict[str, Value]]:
    """Runs that were chosen, by values as they are filled; of several texts as a list. Raises
    UserError where a choice fits none.
    """
    variables = {name for run in runs for name in run}

    def value(name: str, run: Variables) -> str:
        texts = filled(f"{{{name}}}", run, "--runs")
        return texts[0] if len(texts) == 1 else str(texts)

    chosen: list[dict[str, Value]] = []
    for choice in choices:
        fitting = runs
        for name, wanted in choice.items():
            need_known("variable", [name], variables, "--runs")
            known = [(value(name, run), run) for run in fitting if name in run]
            need_known(name, [wanted], {given for given, _ in known}, "--runs")
            fitting = [run for given, run in known if given == wanted]
        chosen += fitting
    return [run for run in runs if not choices or run in chosen]


def _merged(runs: Iterable[Run], where: str) -> Iterator[Run]:
    """Runs of one folder as one, where they begin with the same command.

    Raises UserError where they do not, or two are the same altogether.
    """
    by_folder: dict[str, list[Run]] = {}
    for run in runs:
        by_folder.setdefault(normpath(run.folder), []).append(run)
    for own in by_folder.values():
        alike = zip(*(run.commands for run in own), strict=True)
        shared = tuple(each[0] for each in itertools.takewhile(lambda of: len({*of}) == 1, alike))
        others = [run.commands[len(shared) :] for run in own]
        if not shared or len({*others}) < len(others):
            raise UserError(
                f"{where}, folder: {own[0].folder} would be that of several runs; "
                "name all variables of a run in it"
            )
        yield replace(own[0], commands=shared + tuple(itertools.chain(*others)))


def _names(folders: Sequence[str], where: str) -> list[str]:
    """The folders without what they all begin with. Raises UserError where some are absolute and
    some relative.
    """
    if len({Path(folder).is_absolute() for folder in folders}) > 1:
        raise UserError(f"{where}: some are absolute, some relative; give all in one way")
    above = commonpath([str(Path(folder).parent) for folder in folders])
    return [str(Path(folder).relative_to(above)) for folder in folders]
