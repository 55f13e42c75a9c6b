"""What all ``diet-mt`` commands have in common: how they read arguments, and refuse wrong ones."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from .errors import UserError, printable

# What argparse takes for an option: no number, and no text with spaces in it.
_OPTION = re.compile(r"--?[A-Za-z]\S*")

Fields = TypeVar("Fields")
LARGEST_SEED = 2**31 - 1  # numpy's is twice as large, but fairseq adds epochs to it


def unknown(kind: str, word: str, known: Iterable[str], otherwise: str = "") -> str:
    """``unknown command leaderbord; did you mean leaderboard?``

    ``otherwise``: follows where no name is near.
    """
    names = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), names, n=1)
    return f"unknown {kind} {word}" + (f"; did you mean {names[near[0]]}?" if near else otherwise)


def need_known(kind: str, words: Iterable[str], known: Iterable[str], place: str = "") -> None:
    """Raises UserError for the first of ``words`` that is not ``known``, with the nearest that is,
    or all. ``place``: where the words stand, for the message.
    """
    names = sorted(set(known))
    for word in words:
        if word not in names:
            complaint = unknown(kind, word, names, f"; choose from {', '.join(names)}")
            raise UserError(f"{place}: {complaint}" if place else complaint)


def shell_words(text: str, place: str) -> tuple[str, ...]:
    """``text`` as a shell splits it. Raises UserError, with ``place``, for a quote left open."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(f"{place}: {text}: {error}") from None


def by_name(pairs: Iterable[tuple[str, str]], option: str) -> dict[str, str]:
    """Values of an ``option`` that is given once for each name. Raises UserError for a second."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise UserError(f"{option} {name}: given twice")
        found[name] = value
    return found


def need_file(path: Path, what: str = "file") -> None:
    """Raises UserError where there is none; ``what``: what it should be."""
    if not path.is_file():
        raise UserError(f"{path}: no such {what}")


class Parser(argparse.ArgumentParser):
    """Arguments of ``diet-mt COMMAND``; ``description``: the docstring of its module.

    A mistake is one line on stderr and status 2. Options are written in full. With ``passes_on``
    set, options that the command does not know are those of another program: they come to
    ``passed``, as words, each with what follows it up to the next option; its own are ``known``.
    """

    passes_on = False

    def __init__(self, command: str, description: str | None) -> None:
        super().__init__(
            prog=f"diet-mt {command}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._passed: list[str] = []

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> argparse.Namespace:
        """As argparse; but an unknown option comes before arguments that are missing."""
        words = list(sys.argv[1:] if args is None else args)
        if self.passes_on:
            words, self._passed = self._divided(words)
        for word in words:
            name = word.partition("=")[0]
            if word == "--":
                break
            if _OPTION.fullmatch(name) and name not in self._option_string_actions:
                self.error(unknown("option", name, self._option_string_actions))
        found: argparse.Namespace = super().parse_args(words, namespace)
        found.passed, found.known = self._passed, list(self._option_string_actions)
        return found

    def _divided(self, words: list[str]) -> tuple[list[str], list[str]]:
        """The words of this command and those of the other program."""
        own: list[str] = []
        passed: list[str] = []
        to = own
        for word in words:
            name = word.partition("=")[0]
            if _OPTION.fullmatch(name):
                to = own if name in self._option_string_actions else passed
            to.append(word)
        return own, passed

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(each) for each in action.choices]
        hint = f"; choose from {', '.join(choices)}"
        raise argparse.ArgumentError(action, unknown("value", str(value), choices, hint))

    def takes(self, option: str) -> bool:
        """Whether ``option`` is one of this command's own."""
        return option in self._option_string_actions

    def error(self, message: str) -> NoReturn:
        # Where something is missing, an option that was passed on is rather a misspelt one of ours.
        for word in self._passed if "arguments are required" in message else ():
            if difflib.get_close_matches(word, self._option_string_actions, n=1, cutoff=0.75):
                message = unknown("option", word, self._option_string_actions)
        hint = "" if message.endswith("?") else f"; see {self.prog} --help"
        self.exit(2, printable(f"error: {message}{hint}") + "\n")


def positive(text: str) -> int:
    """Type of an option: a whole number of at least 1."""
    return int(_number(text, int, lambda number: number >= 1, "a whole number of at least 1"))


def count(text: str) -> int:
    """Type of an option: a whole number of at least 0."""
    return int(_number(text, int, lambda number: number >= 0, "a whole number of at least 0"))


def seed(text: str) -> int:
    """Type of an option: what torch, numpy and Python take for one."""
    what = f"a whole number from 0 to {LARGEST_SEED}"
    return int(_number(text, int, lambda number: 0 <= number <= LARGEST_SEED, what))


def place(text: str) -> Path:
    """Type of an option: a path, for which no text at all would be the folder that one is in."""
    if not text:
        raise argparse.ArgumentTypeError("empty; give a path, . for this folder")
    return Path(text)


def pair(text: str) -> tuple[str, str]:
    """Type of an option: ``name=value``."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text}: give name=value")
    return name.strip(), value.strip()


def share(text: str) -> float:
    """Type of an option: a number from 0 to 1."""
    return _number(text, float, lambda number: 0 <= number <= 1, "0 to 1")


def not_negative(text: str) -> float:
    """Type of an option: a number, 0 or more."""
    return _number(text, float, lambda number: 0 <= number < math.inf, "0 or more")


def finite(text: str) -> float:
    """Type of an option: a number."""
    return _number(text, float, math.isfinite, "a number")


def _number(
    text: str, kind: Callable[[str], float], fits: Callable[[float], bool], what: str
) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if not fits(number):
        raise argparse.ArgumentTypeError(f"{text}: expected {what}")
    return number


def filled(kind: type[Fields], args: argparse.Namespace) -> Fields:
    """A dataclass made of the arguments that have the names of its fields."""
    names = (field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]
    return kind(**{name: getattr(args, name) for name in names})


def run(main: Callable[[], int | None]) -> int:
    """Runs a command's body; an error that the user can mend is one line on stderr and status 2."""
    try:
        with _sigterm_as_ctrl_c():
            return main() or 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # who read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(printable(f"error: {where}{error.strerror or error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print("error: interrupted; run again to continue", file=sys.stderr)
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    except Exception as error:
        # fairseq raises plain ones; a command that has not loaded it cannot meet them.
        patch = sys.modules.get(f"{__package__}.fairseq_patches.one_line_errors")
        line = patch.one_line(error) if patch else None
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        return 2


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """What batch systems send leaves nothing half-written either, and nothing at work."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt(number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
