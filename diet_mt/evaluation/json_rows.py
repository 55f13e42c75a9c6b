"""Files of JSON lines, each of which is one flat frozen dataclass: checked, replaced, locked.

A file is only ever replaced as a whole, and who changes one holds the lock of its folder, so that
several processes can add to it at a time and a reader never meets half a line.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ..errors import UserError

Row = TypeVar("Row")

_SCALARS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}


def _is_scalar(value: object, kind: str) -> bool:
    # bool is an int to Python, not to a reader of the record.
    return isinstance(value, _SCALARS[kind]) and not isinstance(value, bool)


def _is_option(value: object) -> bool:
    return value is None or isinstance(value, (str, bool, int, float))


# Annotation of a field, as it is written in the dataclass -> whether a value of JSON fits it.
_FITS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: _is_scalar(value, "str"),
    "str | None": lambda value: value is None or _is_scalar(value, "str"),
    "int": lambda value: _is_scalar(value, "int"),
    "float": lambda value: _is_scalar(value, "float"),
    "list[str]": lambda value: (
        isinstance(value, list) and all(_is_scalar(each, "str") for each in value)
    ),
    "dict[str, str]": lambda value: (
        isinstance(value, dict) and all(_is_scalar(each, "str") for each in value.values())
    ),
    "dict[str, float]": lambda value: (
        isinstance(value, dict) and all(_is_scalar(each, "float") for each in value.values())
    ),
    "dict[str, Option]": lambda value: (
        isinstance(value, dict) and all(_is_option(each) for each in value.values())
    ),
}


def row_text(row: Any) -> str:
    """One line, without its end. Raises ValueError for a number that JSON does not have (NaN)."""
    return json.dumps(dataclasses.asdict(row), ensure_ascii=False, allow_nan=False)


def parse_row(kind: type[Row], line: str) -> Row:
    """The inverse of ``row_text`` for a dataclass ``kind``; raises UserError for anything else.

    A field that has a default may be missing, so rows written before it was added still read.
    """
    try:
        values = json.loads(line)
    except ValueError as error:
        raise UserError(f"not JSON ({error})") from None
    if not isinstance(values, dict):
        raise UserError("not a JSON object")
    fields: tuple[Any, ...] = dataclasses.fields(kind)  # type: ignore[arg-type]
    for field in fields:
        if field.name not in values:
            if field.default is field.default_factory is dataclasses.MISSING:
                raise UserError(f"no field '{field.name}'")
            continue
        value = values[field.name]
        if not _FITS[str(field.type)](value):
            raise UserError(f"field '{field.name}' is {value!r}, expected {field.type}")
    unknown = sorted(set(values) - {field.name for field in fields})
    if unknown:
        raise UserError(f"unknown field '{unknown[0]}'")
    try:
        return kind(**values)
    except ValueError as error:  # what the class itself refuses
        raise UserError(str(error)) from None


def read_rows(kind: type[Row], path: Path) -> list[Row]:
    """All rows of a file, in order. Raises UserError naming the file and the line."""
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        if line:
            try:
                rows.append(parse_row(kind, line))
            except UserError as error:
                raise UserError(f"{path}, line {number}: {error}") from None
    return rows


def put_row(path: Path, row: Row, key: Callable[[Row], object]) -> None:
    """Adds ``row`` to the file ``path``, in the place of the rows with its ``key``, if any.

    Not safe by itself: call it while :func:`locked` holds the file's folder.
    """
    rows: list[Row] = read_rows(type(row), path) if path.exists() else []
    mine = key(row)
    places = [number for number, other in enumerate(rows) if key(other) == mine]
    kept = [other for number, other in enumerate(rows) if number not in places]
    kept.insert(places[0] if places else len(rows), row)
    write_rows(path, kept)


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Replaces the file as a whole."""
    write_text(path, "".join(row_text(row) + "\n" for row in rows))


def write_text(path: Path, text: str) -> None:
    """Writes a file that appears under its name only when it is whole; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.replace(part, path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder's advisory lock, so that no row written meanwhile gets lost; makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
