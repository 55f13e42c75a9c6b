"""Command-line options declared as dataclass fields, and their types."""

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

from .errors import UserError, one_liners, printable

OPTION = "option"  # key of the Option in the metadata of a field
LARGEST_SEED = 2**31 - 1  # half of numpy's limit, because fairseq adds the epoch


@dataclasses.dataclass(frozen=True)
class Option:
    """Arguments of argparse for a field, in addition to its name, type and default."""

    help: str
    flag: str = ""  # default: --NAME; for a positional argument: NAME
    positional: bool = False
    metavar: str | tuple[str, ...] | None = None
    choices: Sequence[str] | None = None
    nargs: str | int | None = None  # default: + for sequences
    usual: Callable[[], Any] | None = None  # computes the default on the command line
    repeat: bool = False  # each use of the option adds a value
    negatable: bool = False  # --NAME and --no-NAME
    exclusive: str = ""  # options with the same label exclude each other


def option(help: str, default: Any = MISSING, **about: Any) -> Any:
    """A dataclass field that is a command-line option, required if it has no default."""
    return dataclasses.field(default=default, metadata={OPTION: Option(help, **about)})


def argument(help: str, default: Any = MISSING, **about: Any) -> Any:
    """A dataclass field that is a positional argument."""
    return option(help, default, positional=True, **about)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """Base class of commands: dataclasses with options as fields and a method ``run``.

    The docstring is the help text; a nested dataclass is a group of options.
    """

    passes_on: ClassVar[bool] = False  # unknown options are passed to fairseq
    defaults: ClassVar[Mapping[str, Any]] = {}  # override those of nested and inherited fields
    left_out: ClassVar[Sequence[str]] = ()  # nested and inherited fields without an option
    words: Sequence[str] = ()  # all arguments; this and the next two are no options
    passed: Sequence[str] = ()  # options for fairseq
    known: Sequence[str] = ()  # names of the command's own options

    def run(self) -> int | None:
        """Runs the command and returns its exit status; None means 0."""
        raise NotImplementedError


def flag(name: str) -> str:
    """``position_in`` -> ``--position-in``."""
    return f"--{name.replace('_', '-')}"


def unknown(kind: str, word: str, known: Iterable[str], otherwise: str = "") -> str:
    """``unknown command leaderbord; did you mean leaderboard?``, or ``otherwise`` as the ending."""
    names = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), names, n=1)
    return f"unknown {kind} {word}" + (f"; did you mean {names[near[0]]}?" if near else otherwise)


def need_known(kind: str, words: Iterable[str], known: Iterable[str], place: str = "") -> None:
    """Raises UserError for the first unknown word; ``place``: prefix of the message."""
    names = sorted(set(known))
    for word in words:
        if word not in names:
            complaint = unknown(kind, word, names, f"; choose from {', '.join(names)}")
            raise UserError(f"{place}: {complaint}" if place else complaint)


def shell_words(text: str, place: str) -> tuple[str, ...]:
    """``text`` split as by a shell. Raises UserError, with prefix ``place``, for wrong quoting."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(f"{place}: {text}: {error}") from None


def need_file(path: Path, what: str = "file") -> None:
    """Raises UserError if ``path`` is not a file; ``what``: the kind of file, for the message."""
    if not path.is_file():
        raise UserError(f"{path}: no such {what}")


def number(
    kind: Callable[[str], float], is_valid: Callable[[Any], bool], what: str
) -> Callable[[str], Any]:
    """A converter of text to valid numbers; ``what``: their range, for the error message."""

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
        raise argparse.ArgumentTypeError("empty path; use . for the current folder")
    return Path(text)


def pair(text: str) -> tuple[str, str]:
    """Name and value of ``name=value``."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text}: expected name=value")
    return name.strip(), value.strip()


positive = number(int, lambda n: n >= 1, "an integer of at least 1")
_count = number(int, lambda n: n >= 0, "an integer of at least 0")
_seed = number(int, lambda n: 0 <= n <= LARGEST_SEED, f"an integer from 0 to {LARGEST_SEED}")

# Types of fields, each with its converter and metavar.
Positive = Annotated[int, positive, "N"]
Count = Annotated[int, _count, "N"]
Seed = Annotated[int, _seed, "N"]
Share = Annotated[float, number(float, lambda n: 0 <= n <= 1, "a number from 0 to 1"), "N"]
NotNegative = Annotated[float, number(float, lambda n: 0 <= n < math.inf, "a number >= 0"), "N"]
Finite = Annotated[float, number(float, math.isfinite, "a number"), "N"]
File = Annotated[Path, Path, "FILE"]
Folder = Annotated[Path, _folder, "FOLDER"]
Pair = Annotated[tuple[str, str], pair, "NAME=VALUE"]


def run(main: Callable[[], int | None]) -> int:
    """The exit status of ``main``; for errors in the user's input, one line on stderr and 2."""
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
        line = next(filter(None, (one_line(error) for one_line in one_liners)), None)
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        return 2


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Treats SIGTERM, which batch systems send, like Ctrl-C, so that children end, too."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt(number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
