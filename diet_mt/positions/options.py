"""Options of the encodings.

A field of an encoding made with :func:`option` is an option of the command line; what stands there
is all that is said of it anywhere. ``OPTIONS`` of this package has them all.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Option:
    """``flag`` of the command line; ``meaning``, a line of its help; ``kind`` of the values; for
    numbers the ``least``, for words the ``choices``.
    """

    flag: str
    meaning: str
    kind: type
    least: float = 1
    choices: Tuple[str, ...] = ()

    @property
    def attribute(self) -> str:
        """Its name among parsed options: ``position_rank`` for ``--position-rank``."""
        return self.flag[2:].replace("-", "_")

    def problem(self, value: Any) -> Optional[str]:
        """What is wrong with ``value``; None: nothing, or nothing was given."""
        if value is None or self.kind is bool:
            return None
        if self.choices:
            wanted = "" if value in self.choices else f"choose from {', '.join(self.choices)}"
        elif not isinstance(value, int if self.kind is int else (int, float)):
            # From the overrides of a checkpoint anything can come.
            wanted = f"must be a {'whole ' if self.kind is int else ''}number"
        else:
            wanted = "" if self.least <= value < math.inf else f"must be at least {self.least}"
        return f"{self.flag} {value}: {wanted}" if wanted else None


def option(
    flag: str,
    default: Any,
    meaning: str,
    *,
    kind: Optional[type] = None,
    least: float = 1,
    choices: Sequence[str] = (),
) -> Any:
    """A field of an encoding that is an :class:`Option`; ``kind`` is that of the default, unless
    given.
    """
    its = Option(flag, meaning, kind or type(default), least, tuple(choices))
    return dataclasses.field(default=default, metadata={"option": its})


def options_of(encoding: Any) -> Iterator[Tuple[str, Option]]:
    """The options of an encoding or its class, by the names of their fields."""
    for field in dataclasses.fields(encoding):
        if "option" in field.metadata:
            yield field.name, field.metadata["option"]
