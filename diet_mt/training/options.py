"""Options of fairseq-train as a mapping, ``{"lr": ["0.005"], "share-all-embeddings": []}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import UserError
from ..evaluation.options import options_of
from ..recipes import Values

Options = dict[str, list[str]]


def parse(words: Iterable[str]) -> Options:
    """What is given on a command line; the last value counts.

    Raises UserError for a word that belongs to no option.
    """
    found = options_of(words)
    if stray := found.pop("", None):
        raise UserError(f"unexpected argument '{stray[0]}'; options begin with --")
    return {name.lstrip("-"): values for name, values in found.items()}


def of_values(values: Values) -> Options:
    """What a recipe gives: true is a flag; false and null leave an option out."""
    return {
        name: [] if value is True else [str(value)]
        for name, value in values.items()
        if value is not None and value is not False
    }


def as_words(options: Mapping[str, list[str]]) -> list[str]:
    """The inverse of :func:`parse`."""
    return [word for name, values in options.items() for word in (f"--{name}", *values)]


def one(options: Options, name: str, default: str = "") -> str:
    """The value of an option; ``default`` where it is not given."""
    return " ".join(options[name]) if name in options else default


def whole(options: Options, name: str, default: int = 0) -> int:
    """The same as a whole number of at least 1, or ``default``. Raises UserError for others."""
    text = one(options, name)
    if name not in options:
        return default
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise UserError(f"{_given(name, text)}: expected a whole number of at least 1")
    return int(text)


def number(options: Options, name: str, least: float, most: float) -> float:
    """The same as a number within these bounds. Raises UserError for others."""
    text = one(options, name)
    try:
        value = float(text)
    except ValueError:
        raise UserError(f"{_given(name, text)}: expected a number") from None
    if not least <= value <= most:
        bounds = f"{least:g} or more" if most == float("inf") else f"{least:g} to {most:g}"
        raise UserError(f"{_given(name, text)}: expected {bounds}")
    return value


def _given(name: str, text: str) -> str:
    return f"--{name} {text}".strip()
