"""Options of commands as fields of dataclasses, their types, and suggestions for unknown words."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any, ClassVar

from .errors import UserError, printable

OPTION = "option"  # key of an Option in a field's metadata
LARGEST_SEED = 2**31 - 1  # numpy's is twice as large, but fairseq adds epochs to it


@dataclasses.dataclass(frozen=True)
class Option:
    """What argparse needs of a field beyond its name, type and default."""

    help: str
    flag: str = ""  # default --NAME; of a positional argument NAME
    positional: bool = False
    metavar: str | tuple[str, ...] | None = None
    choices: Sequence[str] | None = None
    nargs: str | int | None = None  # default: of a sequence +
    usual: Callable[[], Any] | None = None  # computed default of the command line
    repeat: bool = False  # each use of the option adds a value
    negatable: bool = False  # --NAME and --no-NAME
    exclusive: str = ""  # options of the same label exclude each other


def option(help: str, default: Any = MISSING, **about: Any) -> Any:
    """A dataclass field that is an option of a command; required without a default."""
    return dataclasses.field(default=default, metadata={OPTION: Option(help, **about)})


def argument(help: str, default: Any = MISSING, *, name: str = "", **about: Any) -> Any:
    """A dataclass field that is a positional argument."""
    return option(help, default, flag=name, positional=True, **about)


class Command:
    """Base of the commands: dataclasses with their options as fields and a method ``run``.

    The docstring is the help. Fields of other dataclasses, such as TextSettings, add a group of
    options each; fields ``words``, ``passed`` and ``known`` have what ``cli.parser.Parser`` says.
    """

    passes_on: ClassVar[bool] = False  # unknown options are those of fairseq
    defaults: ClassVar[Mapping[str, Any]] = {}  # other defaults of nested and inherited fields
    left_out: ClassVar[Sequence[str]] = ()  # nested and inherited fields that are no options here

    def run(self) -> int | None:
        """The exit status; None is 0."""
        raise NotImplementedError


def unknown(kind: str, word: str, known: Iterable[str], otherwise: str = "") -> str:
    """``unknown command leaderbord; did you mean leaderboard?``

    ``otherwise``: the end of the message without a similar name.
    """
    names = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), names, n=1)
    return f"unknown {kind} {word}" + (f"; did you mean {names[near[0]]}?" if near else otherwise)


def need_known(kind: str, words: Iterable[str], known: Iterable[str], place: str = "") -> None:
    """UserError for the first of ``words`` that is not ``known``, with a suggestion or all names.
    ``place``: prefix of the message.
    """
    names = sorted(set(known))
    for word in words:
        if word not in names:
            complaint = unknown(kind, word, names, f"; choose from {', '.join(names)}")
            raise UserError(f"{place}: {complaint}" if place else complaint)


def shell_words(text: str, place: str) -> tuple[str, ...]:
    """``text`` split as a shell does. ``place``: prefix of the error for an open quote."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(f"{place}: {text}: {error}") from None


def by_name(pairs: Iterable[tuple[str, str]], option: str) -> dict[str, str]:
    """Name and value pairs of an option as a mapping; each name once."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise UserError(f"{option} {name}: given twice")
        values[name] = value
    return values


def need_file(path: Path, what: str = "file") -> None:
    """UserError if ``path`` is no file. ``what``: its kind, for the message."""
    if not path.is_file():
        raise UserError(f"{path}: no such {what}")


def number(
    kind: Callable[[str], float], is_valid: Callable[[Any], bool], what: str
) -> Callable[[str], Any]:
    """A parser of numbers. ``what``: the valid ones, for the message."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not is_valid(value):
            raise argparse.ArgumentTypeError(f"{text}: expected {what}")
        return value

    return parse


def _folder(text: str) -> Path:
    if not text:  # pathlib's current folder
        raise argparse.ArgumentTypeError("empty; give a path, . for this folder")
    return Path(text)


def pair(text: str) -> tuple[str, str]:
    """``name=value``, split."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text}: give name=value")
    return name.strip(), value.strip()


positive = number(int, lambda n: n >= 1, "a whole number of at least 1")
_count = number(int, lambda n: n >= 0, "a whole number of at least 0")
_seed = number(int, lambda n: 0 <= n <= LARGEST_SEED, f"a whole number from 0 to {LARGEST_SEED}")

# Types of fields: with the function that reads them from the command line, and a metavar.
Positive = Annotated[int, positive, "N"]
Count = Annotated[int, _count, "N"]
Seed = Annotated[int, _seed, "N"]
Share = Annotated[float, number(float, lambda n: 0 <= n <= 1, "0 to 1"), "N"]
NotNegative = Annotated[float, number(float, lambda n: 0 <= n < math.inf, "0 or more"), "N"]
Finite = Annotated[float, number(float, math.isfinite, "a number"), "N"]
File = Annotated[Path, Path, "FILE"]
Folder = Annotated[Path, _folder, "FOLDER"]
Pair = Annotated[tuple[str, str], pair, "NAME=VALUE"]


def run(main: Callable[[], int | None]) -> int:
    """The exit status of a command's body: 2 for an error of user input, one line on stderr."""
    try:
        with _sigterm_as_ctrl_c():
            return main() or 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has closed the output
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
        # fairseq raises plain exceptions, for which a patch of the plugin has messages.
        patch = sys.modules.get("diet_mt.fairseq_patches.error_lines")
        line = patch.one_line(error) if patch else None
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        return 2


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Handles the signal of batch systems as Ctrl-C: nothing half-written, no child left."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt(number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
