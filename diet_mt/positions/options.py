"""Options of the encodings: dataclass fields made with :func:`option`.

Flag, default, help and valid values are declared there and nowhere else; ``OPTIONS`` of the package
collects them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """``flag`` of the command line; ``meaning``, its help; ``kind`` of the values; the ``least``
    number or the ``choices`` of words. ``implied``: weights of a model described without it have
    the same meaning.
    """

    flag: str
    meaning: str
    kind: type
    least: float = 1
    choices: tuple[str, ...] = ()
    implied: bool = False

    @property
    def attribute(self) -> str:
        """Its name among parsed options: ``position_rank`` for ``--position-rank``."""
        return self.flag[2:].replace("-", "_")

    def problem(self, value: Any) -> str | None:
        """Why ``value`` is invalid, or None."""
        if value is None or self.kind is bool or (self.kind is str and not self.choices):
            return None
        if self.choices:
            wanted = "" if value in self.choices else f"choose from {', '.join(self.choices)}"
        elif not isinstance(value, int if self.kind is int else (int, float)):
            # --model-overrides takes any literal.
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
    """A field of an encoding that is an :class:`Option`; ``kind``: by default the default's."""
    declared = Option(flag, meaning, kind or type(default), least, tuple(choices), implied)
    return dataclasses.field(default=default, metadata={"option": declared})


def options_of(encoding: Any) -> Iterator[tuple[str, Option]]:
    """The options of an encoding or its class, by field name."""
    for field in dataclasses.fields(encoding):
        if "option" in field.metadata:
            yield field.name, field.metadata["option"]


def optional(
    flag: str, kind: type, meaning: str, choices: Iterable[str] = (), least: float = 1
) -> Any:
    """An option that is off by default and :attr:`Option.implied`."""
    return option(flag, None, meaning, kind=kind, least=least, choices=choices, implied=True)


def rank_option() -> Any:
    """The rank of position tables, implied by their shapes."""
    meaning = "rank of the position tables (head size by default; concat: an eighth of the width)"
    return optional("--position-rank", int, meaning)


def clip_option(default: int) -> Any:
    """The clip of the encodings with clipped distances."""
    return option("--position-clip", default, "largest distance with an entry of its own")


def buckets_option(default: int | None) -> Any:
    """The number of buckets of the encodings that have them."""
    return option("--position-buckets", default, "buckets of distances", kind=int)


def flag_option(flag: str, meaning: str) -> Any:
    """A flag that is off by default, and then missing in descriptions, as before there was one."""
    return option(flag, None, meaning, kind=bool)
