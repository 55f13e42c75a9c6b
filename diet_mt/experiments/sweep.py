"""The runs of a sweep file and their commands, with all variables filled in.

``settings`` are variables of all runs; ``runs`` is a list of mappings, each with a run for every
combination of its values. ``recipe``, the name of the file, and ``folder`` are variables, too. A
command of ``prepare`` is filled for every run, and equal results are executed once; in a command of
``report`` each word is repeated for each of its values. Entries with the same folder and the same
first command form one run: their common first commands, then the others of each entry.
"""

from __future__ import annotations

import itertools
import shlex
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonpath, normpath
from pathlib import Path
from typing import Any

import yaml

from ..system.errors import UserError
from ..system.options import need_known, shell_words, unknown

# Text, or a list: a word that contains it is repeated for each text, and left out if it is empty.
Value = str | list[str]
Variables = Mapping[str, Value]
Command = tuple[str, ...]
MISSING = "???"  # a mandatory value, as in hydra's files


@dataclass(frozen=True)
class Run:
    """Commands to be run one after the other; their log is in ``folder``, ``name`` is its end."""

    name: str
    folder: Path
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Sweep:
    """Commands: first ``prepare``, in order; then ``runs``, in any order; then ``report``."""

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
    content: Mapping[str, Any],
    where: str,
    changes: Variables | None = None,
    choices: Sequence[Mapping[str, str]] = (),
) -> Sweep:
    """The sweep of a file's content. ``where``: the file's name; ``changes``: values that replace
    those of the file; ``choices``: only runs with all values of one. Raises UserError for errors.
    """
    for name in ("runs", "run", "folder"):
        if not content.get(name):
            raise UserError(f"{where}: no section {name}; not a sweep file")
    for name in ("prepare", "runs", "run", "report"):
        if not isinstance(content.get(name) or [], list):
            raise UserError(f"{where}, {name}: should be a list")
    variables = [*(content.get("settings") or {}), *itertools.chain(*content["runs"])]
    need_known("variable", changes or (), map(str, variables), "--set")
    for name in changes or ():
        if f"{{{name}}}" not in str(content):
            raise UserError(f"--set: {where} does not use {name}")
    runs = [{"recipe": where, **run} for run in _runs(content, where, dict(changes or {}))]
    if not runs:
        raise UserError(f"{where}, runs: a variable has no values, so there are no runs")
    runs = [{**run, "folder": _one(content["folder"], run, f"{where}, folder")} for run in runs]
    runs = _chosen(runs, choices)

    def commands(section: str, of: Sequence[Variables]) -> tuple[Command, ...]:
        texts = content.get(section) or ()
        return tuple(command(text, of, f"{where}, {section}") for text in texts)

    folders = [str(run["folder"]) for run in runs]
    entries = [
        Run(name, Path(folder), commands("run", [run]))
        for name, folder, run in zip(_names(folders), folders, runs, strict=True)
    ]
    prepare = zip(*(commands("prepare", [run]) for run in runs), strict=True)
    return Sweep(
        tuple(dict.fromkeys(itertools.chain(*prepare))),
        tuple(_merged(entries, where)),
        commands("report", runs),
    )


def _runs(
    content: Mapping[str, Any], where: str, changes: dict[str, Value]
) -> list[dict[str, Value]]:
    """The variables of each run, once: the settings with a combination of an entry's values."""
    of_runs = {name for entry in content["runs"] for name in entry}
    settings = content.get("settings") or {}
    settings = {str(name): value_of(each, f"{where}, {name}") for name, each in settings.items()}
    settings |= {name: value for name, value in changes.items() if name not in of_runs}
    runs: dict[str, dict[str, Value]] = {}
    for entry in content["runs"]:
        values: dict[str, list[Value]] = {}
        # An entry without the variable has its default in the settings.
        own = {n: v for n, v in changes.items() if n in entry or (n in settings and n in of_runs)}
        for name, given in {**entry, **own}.items():
            several = given if isinstance(given, list) else [given]
            values[str(name)] = [value_of(each, f"{where}, runs, {name}") for each in several]
        for each in itertools.product(*values.values()):
            run = {**settings, **dict(zip(values, each, strict=True))}
            runs.setdefault(repr(sorted(run.items())), run)
    return list(runs.values())


def _chosen(
    runs: list[dict[str, Value]], choices: Sequence[Mapping[str, str]]
) -> list[dict[str, Value]]:
    """Runs whose filled values match a choice (all without); a list matches its Python form."""
    variables = {name for run in runs for name in run}

    def value(name: str, run: Variables) -> str:
        texts = filled(f"{{{name}}}", run, "--runs")
        return texts[0] if len(texts) == 1 else str(texts)

    chosen: list[dict[str, Value]] = []
    for choice in choices:
        need_known("variable", choice, variables, "--runs")
        fitting = runs
        for name, wanted in choice.items():
            values = [(value(name, run), run) for run in fitting if name in run]
            need_known(name, [wanted], {given for given, _ in values}, "--runs")
            fitting = [run for given, run in values if given == wanted]
        chosen += fitting
    return [run for run in runs if not choices or run in chosen]


def _merged(entries: Iterable[Run], where: str) -> Iterator[Run]:
    """Entries with the same folder as one run; they may differ only in their later commands."""
    by_folder: dict[str, list[Run]] = {}
    for entry in entries:
        by_folder.setdefault(normpath(entry.folder), []).append(entry)
    for own in by_folder.values():
        alike = zip(*(run.commands for run in own), strict=True)
        shared = tuple(each[0] for each in itertools.takewhile(lambda of: len({*of}) == 1, alike))
        others = [run.commands[len(shared) :] for run in own]
        if not shared or len({*others}) < len(others):
            hint = "name all variables of a run in it"
            raise UserError(f"{where}, folder: {own[0].folder} is that of several runs; {hint}")
        yield replace(own[0], commands=shared + tuple(itertools.chain(*others)))


def _names(folders: Sequence[str]) -> list[str]:
    """The folders without their common parent."""
    paths = [Path(folder).absolute() for folder in folders]
    above = commonpath([str(path.parent) for path in paths])
    return [str(path.relative_to(above)) for path in paths]


def value_of(given: object, where: str) -> Value:
    """A value of a YAML file as text or texts; null: no text. Raises UserError for other types."""
    if given is None:
        return []
    if isinstance(given, list):
        texts = [value_of(each, where) for each in given]
        if all(isinstance(each, str) for each in texts):
            return [each for each in texts if isinstance(each, str)]
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        return str(given)
    raise UserError(f"{where}: {given!r} is not a text, number or list of these; put it in quotes")


def value_in(text: str, where: str) -> Value:
    """Command-line value: text, empty or ``[a, 'b, c']``. Raises UserError for invalid YAML."""
    if text[:1] != "[":
        return text or []
    try:
        return value_of(yaml.safe_load(text), where)
    except yaml.YAMLError:
        raise UserError(f"{where}: {text}: give a list as [a, b]") from None


def filled(text: str, variables: Variables, where: str) -> list[str]:
    """``text`` for each combination of its variables' values. Raises UserError for unknown ones."""
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise UserError(f"{where}: {text}: {error}; write {{{{ and }}}} for braces") from None
    values: dict[str, list[str]] = {}
    for name in fields:
        if name not in variables:
            hint = f"; there are {', '.join(variables)}"
            raise UserError(f"{where}: {unknown('variable', name, variables, hint)}")
        given = variables[name]
        if given == MISSING:
            raise UserError(f"{where}: needs a value for {name}; give it by --set {name}=...")
        others = {key: value for key, value in variables.items() if key != name}
        texts = [given] if isinstance(given, str) else given
        values[name] = [each for one in texts for each in filled(one, others, f"{where}, {name}")]
    rows = itertools.product(*values.values())
    return [text.format(**dict(zip(values, each, strict=True))) for each in rows]


def _one(text: str, variables: Variables, where: str) -> str:
    texts = filled(text, variables, where)
    if len(texts) != 1:
        raise UserError(f"{where}: {text}: {len(texts)} values where one is needed")
    return texts[0]


def command(text: str, runs: Sequence[Variables], where: str) -> Command:
    """The words of a command, split as by a shell and filled with the variables of runs: each word
    is repeated for each of its different fillings. Raises UserError for an empty command.
    """
    words = [
        each
        for word in shell_words(text, where)
        for filling in dict.fromkeys(tuple(filled(word, variables, where)) for variables in runs)
        for each in filling
    ]
    if not words:
        raise UserError(f"{where}: an empty command")
    return tuple(words)


def shown(words: Iterable[str]) -> str:
    """A command to be pasted into a shell, which expands ``*``."""
    return " ".join("*".join(shlex.quote(part) if part else "" for part in word.split("*"))
                    if "*" in word else shlex.quote(word) for word in words)  # fmt: skip
