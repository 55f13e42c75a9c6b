"""Commands with variables: ``diet-mt train {data}/bin {system}_tiny --seed {seed}``."""

from __future__ import annotations

import itertools
import shlex
import string
from collections.abc import Iterable, Mapping, Sequence

import yaml

from ..command_line import shell_words, unknown
from ..errors import UserError

# Text, or a list: a word that names one is there once for each of its texts, so perhaps not at all.
Value = str | list[str]
Command = tuple[str, ...]
MISSING = "???"  # a value that only the user can know, as in hydra's files


def value_of(given: object, where: str) -> Value:
    """A value of a YAML file as text or texts; null is no text at all.

    Raises UserError where it is a mapping, or what YAML takes for true or false.
    """
    if given is None:
        return []
    if isinstance(given, list):
        texts = [value_of(each, where) for each in given]
        if all(isinstance(each, str) for each in texts):
            return [each for each in texts if isinstance(each, str)]
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        return str(given)
    raise UserError(f"{where}: {given!r} is no text, number or list of these; put it in quotes")


def value_in(text: str, where: str) -> Value:
    """A value given on the command line: text as it is, or YAML's ``[a, 'b, c']``; nothing: none.

    Raises UserError where the brackets are wrong.
    """
    if text[:1] != "[":
        return text or []
    try:
        return value_of(yaml.safe_load(text), where)
    except yaml.YAMLError:
        raise UserError(f"{where}: {text}: give a list as [a, b]") from None


def names_in(text: str, where: str) -> list[str]:
    """The variables that a text names, each once. Raises UserError where a brace stands alone, or
    where there is a NUL, which no command and no folder can have.
    """
    if "\0" in text:
        raise UserError(f"{where}: {text!r}: has a NUL")
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError as error:
        raise UserError(f"{where}: {text}: {error}; write {{{{ and }}}} for braces") from None
    names = [field for field in fields if field[1] is not None]
    for _, name, layout, conversion in names:
        if not name or not name.isidentifier() or layout or conversion:
            raise UserError(f"{where}: {text}: give the name of a variable alone, as in {{seed}}")
    return list(dict.fromkeys(str(name) for _, name, _, _ in names))


def filled(text: str, variables: Mapping[str, Value], where: str) -> list[str]:
    """The text with its variables filled, for each combination of values that are lists.

    Values may name other variables. Raises UserError where a variable is unknown, or named by its
    own value.
    """
    names = names_in(text, where)
    values = []
    for name in names:
        if name not in variables:
            hint = f"; there are {', '.join(variables)}"
            raise UserError(f"{where}: {unknown('variable', name, variables, hint)}")
        given = variables[name]
        if given == MISSING:
            raise UserError(f"{where}: needs a value for {name}; give it by --set {name}=...")
        others = {key: value for key, value in variables.items() if key != name}
        texts = [given] if isinstance(given, str) else given
        values.append([each for one in texts for each in filled(one, others, f"{where}, {name}")])
    return [
        text.format(**dict(zip(names, each, strict=True))) for each in itertools.product(*values)
    ]


def one_text(text: str, variables: Mapping[str, Value], where: str) -> str:
    """As ``filled``, of a text that must be one. Raises UserError where it is several or none."""
    texts = filled(text, variables, where)
    if len(texts) != 1:
        raise UserError(f"{where}: {text}: {len(texts)} values where one is needed")
    return texts[0]


def command(text: str, runs: Sequence[Mapping[str, Value]], where: str) -> Command:
    """The words of a command, split as a shell does, and then filled with the variables of runs:
    each is there once for each different filling that it has.

    Raises UserError as ``filled``, and where the quotes are not closed, or there is no word.
    """
    found = [
        each
        for word in shell_words(text, where)
        for filling in dict.fromkeys(tuple(filled(word, variables, where)) for variables in runs)
        for each in filling
    ]
    if not found:
        raise UserError(f"{where}: an empty command")
    return tuple(found)


def shown(words: Iterable[str]) -> str:
    """A command as it can be pasted into a shell, which fills in the files for ``*``."""
    return " ".join("*".join(shlex.quote(part) if part else "" for part in word.split("*"))
                    if "*" in word else shlex.quote(word) for word in words)  # fmt: skip
