"""Options of the encodings: dataclass fields made with :func:`option`.

The field is the only declaration of flag, default, help and valid values; ``OPTIONS`` of the
package collects all of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """A command-line option of encodings.

    ``flag``, such as ``--position-rank``; ``meaning``: its help; ``kind``: type of the values;
    ``least``: smallest number; ``choices``: valid words, or empty. ``implied``: whether weights
    have the same meaning without the option.
    """

    flag: str
    meaning: str
    kind: type
    least: float = 1
    choices: tuple[str, ...] = ()
    implied: bool = False

    @property
    def attribute(self) -> str:
        """Attribute of the parsed options: ``position_rank`` for ``--position-rank``."""
        return self.flag[2:].replace("-", "_")

    def problem(self, value: Any) -> str | None:
        """Error message for an invalid ``value``, or None."""
        if value is None or self.kind is bool or (self.kind is str and not self.choices):
            return None
        if self.choices:
            wanted = "" if value in self.choices else f"choose from {', '.join(self.choices)}"
        elif not isinstance(value, int if self.kind is int else (int, float)):
            # --model-overrides accepts any literal.
            wanted = f"must be a {'whole ' if self.kind is int else ''}number"
        else:
            wanted = "" if self.least <= value < math.inf else f"must be at least {self.least}"
        return f"{self.flag} {value}: {wanted}" if wanted else None


def option(
    flag: str,
    default: Any,
    meaning: str,
    *,
    kind: type | None = None,
    least: float = 1,
    choices: Iterable[str] = (),
    implied: bool = False,
) -> Any:
    """A dataclass field with an :class:`Option`; ``kind`` is by default the type of ``default``."""
    declared = Option(flag, meaning, kind or type(default), least, tuple(choices), implied)
    return dataclasses.field(default=default, metadata={"option": declared})


def options_of(encoding: Any) -> Iterator[tuple[str, Option]]:
    """Field name and option of each option of an encoding or encoding class."""
    for field in dataclasses.fields(encoding):
        if "option" in field.metadata:
            yield field.name, field.metadata["option"]


def optional(
    flag: str, kind: type, meaning: str, choices: Iterable[str] = (), least: float = 1
) -> Any:
    """An option that is off by default and :attr:`Option.implied`."""
    return option(flag, None, meaning, kind=kind, least=least, choices=choices, implied=True)


def rank_option() -> Any:
    """The rank of position tables, which their shapes imply."""
    meaning = "rank of position tables (by default the head size; concat: an eighth of the width)"
    return optional("--position-rank", int, meaning)


def clip_option(default: int) -> Any:
    """The clip c of an encoding with clipped distances."""
    return option("--position-clip", default, "maximum distance; larger ones are clipped")


def buckets_option(default: int | None) -> Any:
    """The number of buckets of an encoding with buckets of distances."""
    return option("--position-buckets", default, "number of distance buckets", kind=int)


def flag_option(flag: str, meaning: str) -> Any:
    """A flag, off by default; descriptions omit it if off, like those of models older than it."""
    return option(flag, None, meaning, kind=bool)
