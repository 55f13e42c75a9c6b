"""Files of JSON lines, each a flat frozen dataclass.

A file is replaced as a whole, under the lock of its folder: several processes can add rows at a
time, and a reader never sees half a line.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import UserError
from ..files import make_folder, raw_lines, write_text
from ..stages.lock import alone

# A record is shown line by line, in UTF-8.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")  # of all that is shown behind them
_LONGEST = 200  # letters of a value in an error
_LONGEST_TEXT = 100_000  # letters of a value in a row
_LARGEST = 1e100  # beyond what anything counts or measures, and far from where sums overflow


@dataclass(frozen=True)
class Row:
    """One line of a file. A field added later needs a default, so that older rows still read.

    Raises UserError for numbers that are not finite, control characters, and, except in lists of
    sentences, marks that reorder text.
    """

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            expected = _wrong(value)
            text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
            if isinstance(text, str) and _REORDERING.search(text):
                expected = "text without marks that reorder text"
            if expected:
                raise wrong_field(name, value, expected)

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
    """The error of a field."""
    text = repr(value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return UserError(f"field '{name}' is {text}, expected {expected}")


def _wrong(value: object) -> str:
    """The expected kind of a text or number that is wrong; empty for others."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"at most {_LONGEST_TEXT:,} characters"
    if isinstance(value, str) and _CONTROL.search(value):
        return "text without control characters and halves of surrogate pairs"
    if isinstance(value, (list, dict)):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return next(filter(None, map(_wrong, parts)), "")
    if isinstance(value, (int, float)) and not abs(value) < _LARGEST:
        return f"a finite number below {_LARGEST:g}"
    return ""


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of a type; a whole number is a decimal one, bool is neither."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in args)
    if origin is list:
        return isinstance(value, list) and all(_fits(each, args[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(each, args[1]) for each in value.values())
    return type(value) in ((int, float) if kind is float else (kind,))


def parse_row(kind: type[Kind], line: str) -> Kind:
    """The inverse of ``Row.to_json``; raises UserError for anything else."""
    values = _object(line)
    types = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name in values:
            if not _fits(values[field.name], types[field.name]):
                raise wrong_field(field.name, values[field.name], str(field.type))
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise UserError(f"no field '{field.name}'")
    unknown = sorted(values.keys() - types.keys())
    if unknown:
        raise UserError(f"unknown field '{unknown[0]}'")
    return kind(**values)


def read_rows(kind: type[Kind], path: Path) -> list[Kind]:
    """All rows of a file, in order. Raises UserError naming the file and the line."""
    return _read(path, partial(parse_row, kind))


def read_dicts(
    path: Path, needed: Mapping[str, Any], others: Mapping[str, Any] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """Lines that are no :class:`Row`, with the types of entries that they need, and of ``others``.

    Raises UserError naming the file and the line.
    """
    types = {**needed, **others}

    def parse(line: str) -> dict[str, Any]:
        values = _object(line)
        if missing := [name for name in needed if name not in values]:
            raise UserError(f"no {', '.join(missing)}; written by another command or version")
        for name in types.keys() & values.keys():
            value, kind = values[name], types[name]
            if not _fits(value, kind):
                raise wrong_field(name, value, str(kind) if get_args(kind) else kind.__name__)
            if kind is not Any and (expected := _wrong(value)):
                raise wrong_field(name, value, expected)
        return values

    return _read(path, parse)


def _object(line: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"not JSON ({error})") from None
    if not isinstance(values, dict):
        raise UserError("not a JSON object")
    return values


def _read(path: Path, parse: Callable[[str], Parsed]) -> list[Parsed]:
    """Each line that is not empty, parsed."""
    parsed = []
    for number, raw in enumerate(raw_lines(path), start=1):
        try:
            if line := raw.decode("utf-8").removesuffix("\n"):
                parsed.append(parse(line))
        except UnicodeDecodeError:
            raise UserError(f"{path}, line {number}: not valid UTF-8") from None
        except UserError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
    return parsed


def put_row(path: Path, row: Row) -> None:
    """Adds ``row`` to the file ``path``, in the place of the rows with its ``key``, if any."""
    with locked(path.parent):
        rows: list[Row] = list(read_rows(type(row), path)) if path.exists() else []
        place = next((n for n, other in enumerate(rows) if other.key == row.key), len(rows))
        others = [other for other in rows if other.key != row.key]
        write_rows(path, [*others[:place], row, *others[place:]])


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Replaces the file as a whole."""
    text = "".join(row.to_json() + "\n" for row in rows)
    with locked(path.parent):
        write_text(path, text)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The only process that writes rows in the folder, which is made; waits for another one."""
    make_folder(folder)
    with alone(folder, math.inf):
        yield
