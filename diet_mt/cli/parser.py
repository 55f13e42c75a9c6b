"""The argparse parser of a command, built from the fields of its dataclass."""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
import sys
import types
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints_of

from ..system.errors import printable
from ..system.options import OPTION, Command, Option, flag, unknown

# Words that argparse reads as options: neither numbers nor text with spaces.
_OPTION = re.compile(r"--?[A-Za-z]\S*")
_PARSED = {field.name for field in fields(Command)}  # no options, set by Parser.parse_args
Request = TypeVar("Request")


class Parser(argparse.ArgumentParser):
    """Parser of the arguments of ``diet-mt NAME``, from the dataclass ``kind``.

    An error prints one line to stderr and exits with status 2. Abbreviated options are errors. The
    namespace also has the fields of Command.
    """

    def __init__(self, name: str, kind: type[Command]) -> None:
        super().__init__(
            prog=f"diet-mt {name}",
            description=inspect.cleandoc(kind.__doc__ or ""),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.kind = kind
        self._passed: list[str] = []
        self._exclusive: dict[str, Any] = {}
        self._add(kind, self)

    def _add(self, kind: type, to: Any) -> None:
        """Adds the options of a dataclass and of its nested dataclasses."""
        hints = hints_of(kind, include_extras=True)
        no_option = Option("")
        # Positional arguments come first, because errors list missing arguments in this order.
        for field in sorted(
            fields(kind), key=lambda field: not field.metadata.get(OPTION, no_option).positional
        ):
            hint = hints[field.name]
            if is_dataclass(hint) and isinstance(hint, type):
                title = (hint.__doc__ or "").partition("\n")[0].rstrip(".")
                self._add(hint, self.add_argument_group(title))
            elif field.name in self.kind.left_out:
                continue
            elif about := field.metadata.get(OPTION):
                group = to
                if label := about.exclusive:
                    if label not in self._exclusive:
                        self._exclusive[label] = self.add_mutually_exclusive_group()
                    group = self._exclusive[label]
                self._add_option(group, field, about, hint)

    def _add_option(self, group: Any, field: Field[Any], about: Option, hint: Any) -> None:
        default = about.usual() if about.usual else field.default
        default = self.kind.defaults.get(field.name, default)
        words: dict[str, Any] = {"help": about.help, "default": default}
        kind, metavar, depth = _plain(hint)
        if default is MISSING:
            del words["default"]
        elif default not in (None, "", ()) and kind is not bool and "(default" not in about.help:
            words["help"] += f" (default {_shown(default)})"
        words["help"] = words["help"].replace("%", "%%")
        if kind is bool:
            words["action"] = argparse.BooleanOptionalAction if about.negatable else "store_true"
        else:
            words |= {"type": kind, "choices": about.choices}
            if about.metavar or (metavar and not about.choices):
                words["metavar"] = about.metavar or metavar
            nargs = about.nargs or ("+" if depth > about.repeat else None)
            words |= {"nargs": nargs} if nargs else {}
        if about.repeat:
            words |= {"action": "append", "default": list(default)}
        if about.positional:
            words.setdefault("metavar", field.name)
            group.add_argument(field.name, **words)
        else:
            name = about.flag or flag(field.name)
            group.add_argument(name, dest=field.name, required=default is MISSING, **words)

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> argparse.Namespace:
        """Parses as argparse does, but reports unknown options before missing arguments."""
        given = list(sys.argv[1:] if args is None else args)
        words, self._passed = self._divided(given) if self.kind.passes_on else (given, [])
        for word in words:
            name = word.partition("=")[0]
            if word == "--":
                break
            if _OPTION.fullmatch(name) and not self.takes(name):
                self.error(unknown("option", name, self._option_string_actions))
        parsed: argparse.Namespace = super().parse_args(words, namespace)
        parsed.words, parsed.passed = given, self._passed
        parsed.known = list(self._option_string_actions)
        return parsed

    def _divided(self, words: list[str]) -> tuple[list[str], list[str]]:
        """The command's own arguments, and the options for fairseq with their values."""
        own: list[str] = []
        passed: list[str] = []
        to = own
        for word in words:
            name = word.partition("=")[0]
            if _OPTION.fullmatch(name):
                to = own if self.takes(name) else passed
            to.append(word)
        return own, passed

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        hint = f"; choose from {', '.join(choices)}"
        raise argparse.ArgumentError(action, unknown("value", str(value), choices, hint))

    def takes(self, option: str) -> bool:
        """Whether ``option`` is one of this command's own."""
        return option in self._option_string_actions

    def error(self, message: str) -> NoReturn:
        # If an argument is missing, an option for fairseq is more likely a misspelt one of ours.
        for word in self._passed if "arguments are required" in message else ():
            if difflib.get_close_matches(word, self._option_string_actions, n=1, cutoff=0.75):
                message = unknown("option", word, self._option_string_actions)
        hint = "" if message.endswith("?") else f"; see {self.prog} --help"
        self.exit(2, printable(f"error: {message}{hint}") + "\n")


def filled(kind: type[Request], args: argparse.Namespace) -> Request:
    """A dataclass, nested ones included, filled from the arguments of the same names."""
    hints, values = hints_of(kind), {}
    for field in fields(kind):  # type: ignore[arg-type]
        if is_dataclass(hints[field.name]):
            values[field.name] = filled(hints[field.name], args)
        elif hasattr(args, field.name) and (field.metadata or field.name in _PARSED):
            values[field.name] = getattr(args, field.name)
    return kind(**values)


def _plain(hint: Any) -> tuple[Any, str | None, int]:
    """The converter of one value of a field, its metavar, and the nesting depth of sequences."""
    depth = 0
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            kind, *metavar = hint.__metadata__
            return kind, metavar[0] if metavar else None, depth
        if origin in (Union, types.UnionType):
            hint = next(part for part in get_args(hint) if part is not type(None))
        elif origin is not None and issubclass(origin, Sequence):
            hint, depth = get_args(hint)[0], depth + 1
        else:
            return hint, None, depth


def _shown(default: Any) -> str:
    if isinstance(default, (tuple, list)):
        return " ".join(map(_shown, default))
    if isinstance(default, (int, float)):
        return f"{default:,}" if isinstance(default, int) and default >= 10_000 else f"{default:g}"
    return str(default)
