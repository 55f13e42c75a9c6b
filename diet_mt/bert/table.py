"""Tables as GLUE and XNLI publish them: columns end at tabs, and quotes are letters like any other.

A CSV reader would take a quotation mark at the beginning of a sentence for the start of a quoted
field and swallow the lines up to the next one. Here a line is a row, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import UserError
from ..files import decoded, plain_or_gz, raw_lines

_BYTE_ORDER_MARK = "\ufeff"


@dataclass
class TableRow:
    """One line of a table, which is looked into when a cell is wanted."""

    raw: bytes
    path: Path
    number: int  # of the line, from 1
    columns: Sequence[str]

    @property
    def where(self) -> str:
        return f"{self.path}, line {self.number}"

    def __getitem__(self, column: str) -> str:
        """The cell of a column. Raises UserError where the line cannot be a row."""
        return self._cells[column]

    @cached_property
    def _cells(self) -> dict[str, str]:
        cells = _text(self.path, self.number, self.raw).split("\t")
        if len(cells) != len(self.columns):
            kind = "few" if len(cells) < len(self.columns) else "many"
            raise UserError(
                f"{self.where}: too {kind} columns, {len(cells)} and not {len(self.columns)} "
                f"({', '.join(self.columns)})"
            )
        return dict(zip(self.columns, cells, strict=True))


def find_table(folder: Path, name: str) -> Path:
    """The file ``name`` or ``name.gz`` in ``folder``. Raises UserError if there is none."""
    return plain_or_gz(folder, name, "put the official file there")


def read_table(
    path: Path, needed: Sequence[str], *, columns: Sequence[str] | None = None
) -> Iterator[TableRow]:
    """Yields the rows of a file, plain or gzipped.

    A byte order mark at the beginning is left out, as MRPC's official files have it. Raises
    UserError where the file is missing, not UTF-8 in its first line, empty, or lacks a column.

    Args:
        needed: Names of columns that must be there.
        columns: Names of all columns, for a file without a header; None: its first line says them.
    """
    lines = enumerate(raw_lines(path), start=1)
    if columns is None:
        columns = _text(path, *next(lines, (1, b""))).split("\t")
        missing = [name for name in needed if name not in columns]
        if missing:
            raise UserError(
                f"{path}, line 1: no column '{missing[0]}'; the first line must be the official "
                f"header, with {', '.join(needed)}"
            )
    number = 0
    for number, raw in lines:
        yield TableRow(raw, path, number, columns)
    if not number:
        raise UserError(f"{path}: no rows; replace it with the official file")


def _text(path: Path, number: int, raw: bytes) -> str:
    """A line without its end and, at the beginning of a file, without its byte order mark."""
    line = decoded(raw, f"{path}, line {number}")
    if line.endswith("\r"):
        raise UserError(f"{path}, line {number}: Windows line end (CR LF); convert to plain LF")
    return line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
