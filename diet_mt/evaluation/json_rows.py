"""Files of JSON lines, each a flat frozen dataclass.

A file is replaced as a whole, under the lock of its folder: several processes can add rows at a
time, and a reader never sees half a line.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ..system.engine import alone
from ..system.errors import UserError
from ..system.files import decoded_lines, make_folder, write_text, writing_bytes

# Rows are printed line by line, in one direction.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LARGEST = 1e100  # far from where sums overflow
_LONGEST = 200  # characters of a value in an error


@dataclass(frozen=True)
class Row:
    """One line of a file, without control characters and infinite numbers. A field added later
    needs a default, so that older rows still read.
    """

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            for each in _leaves(value):
                if isinstance(each, str) and _CONTROL.search(each):
                    raise wrong_field(name, value, "text without control characters")
                if isinstance(each, (int, float)) and not abs(each) < _LARGEST:
                    raise wrong_field(name, value, "a finite number")

    @property
    def key(self) -> Hashable:
        """Key of the row that this one replaces; by default none."""
        return id(self)

    def to_json(self) -> str:
        """One line, without its end."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, allow_nan=False)


Kind = TypeVar("Kind", bound=Row)
Parsed = TypeVar("Parsed")


def wrong_field(name: str, value: object, expected: str) -> UserError:
    """The error for an invalid field."""
    text = repr(value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return UserError(f"field '{name}' is {text}, expected {expected}")


def _leaves(value: object) -> Iterator[object]:
    """All texts and numbers of a value, keys included."""
    values = [value]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [*value, *value.values()]
        elif isinstance(value, list):
            values += value
        else:
            yield value


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of a type; a whole number is a decimal one, bool is neither."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in args)
    if origin is list:
        return isinstance(value, list) and all(_fits(each, args[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(each, args[1]) for each in value.values())
    return type(value) in ((int, float) if kind is float else (kind,))


_types_of = cache(get_type_hints)


def parse_row(kind: type[Kind], line: str) -> Kind:
    """The inverse of ``Row.to_json``; raises UserError for anything else."""
    fields, types = dataclasses.fields(kind), _types_of(kind)  # type: ignore[arg-type]  # hashable
    needed = [each.name for each in fields if each.default is each.default_factory is MISSING]
    values = _parse(needed, line)
    for name, value in values.items():
        if name not in types:
            raise UserError(f"unknown field '{name}'")
        if not _fits(value, types[name]):
            raise wrong_field(name, value, str(types[name]))
    return kind(**values)


def _parse(needed: Iterable[str], line: str) -> dict[str, Any]:
    """A JSON object with these entries."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"not JSON ({error})") from None
    if not isinstance(values, dict):
        raise UserError("not a JSON object")
    if missing := [name for name in needed if name not in values]:
        raise UserError(f"no field '{missing[0]}'; of another command or version")
    return values


def read_rows(kind: type[Kind], path: Path) -> list[Kind]:
    """All rows of a file, plain or gzipped. Raises UserError naming the file and the line."""
    return _read(path, partial(parse_row, kind))


def read_dicts(path: Path, needed: Iterable[str]) -> list[dict[str, Any]]:
    """JSON objects that are no :class:`Row`, with these entries. Raises as ``read_rows``."""
    return _read(path, partial(_parse, list(needed)))


def _read(path: Path, parse: Callable[[str], Parsed]) -> list[Parsed]:
    parsed = []
    for place, line in decoded_lines(path):
        try:
            if line:
                parsed.append(parse(line))
        except UserError as error:
            raise UserError(f"{place}: {error}") from None
    return parsed


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Replaces a file, compressed if its name ends in .xz: equal rows give equal bytes."""
    text = "".join(row.to_json() + "\n" for row in rows)
    with locked(path.parent):
        if path.suffix == ".xz":
            with writing_bytes(path) as file:
                file.write(lzma.compress(text.encode()))
        else:
            write_text(path, text)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Context that locks a folder, which is created, for writing rows."""
    make_folder(folder)
    with alone(folder, math.inf):
        yield
