"""Tables and what is said around them, and how a terminal and Markdown show both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Union

import tabulate

from .errors import printable

tabulate.MIN_PADDING = 0  # columns are as wide as what is in them
_WIDEST, _LONGEST = 300, 4000  # characters of a cell and of an item in a terminal


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Grid:
    """``numbers``: which columns are set flush right; empty: all but the first."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[bool] = ()

    def table(self, form: str) -> str:
        """As ``tabulate`` calls its forms: plain, pipe, ..."""
        numbers = self.numbers or [False, *[True] * (len(self.heads) - 1)]
        sides = ["right" if number else "left" for number in numbers]
        return tabulate.tabulate(
            self.rows, self.heads, tablefmt=form, colalign=sides, disable_numparse=True
        )


@dataclass(frozen=True)
class Items:
    """A list; a line that begins with two spaces belongs to the one before."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Note:
    text: str


@dataclass(frozen=True)
class Commands:
    """What a terminal leaves out, and a page folds."""

    summary: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Folded:
    """A table that a page folds, and a terminal shows where it is asked to."""

    summary: str
    grid: Grid


Block = Union[Heading, Grid, Items, Note, Commands, Folded]


def text(blocks: Iterable[Block], *, verbose: bool = False) -> str:
    """For a terminal, ending in a newline; ``verbose``: with what is folded elsewhere."""
    out: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            out += [*([""] if out else []), printable(block.text)]
        elif isinstance(block, Grid):
            out += _plain(block)
        elif isinstance(block, Folded) and verbose:
            out += ["", f"  {block.summary}:", *_plain(block.grid)]
        elif isinstance(block, Items):
            out += [f"  {printable(line, _LONGEST)}" for line in block.lines]
        elif isinstance(block, Note):
            out += ["", block.text]
    return "\n".join([*out, ""])


def _plain(grid: Grid) -> list[str]:
    rows = [[printable(cell, _WIDEST) for cell in row] for row in grid.rows]
    table = Grid(grid.heads, rows, grid.numbers).table("plain")
    return [f"  {line}".rstrip() for line in table.split("\n")]


def markdown(blocks: Iterable[Block]) -> str:
    """With every command, ending in a newline. What rows say is text, never markup."""
    out: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            out += [f"**{plain(block.text)}**", ""]
        elif isinstance(block, Grid):
            out += [markdown_table(block), ""]
        elif isinstance(block, Items):
            starts = (line[: len(line) - len(line.lstrip())] for line in block.lines)
            pairs = zip(starts, block.lines, strict=True)
            out += [*(f"{start}- {plain(line.strip())}" for start, line in pairs), ""]
        elif isinstance(block, Note):
            out += [plain(block.text), ""]
        elif isinstance(block, Folded):
            out += _folded(block.summary, markdown_table(block.grid))
        else:
            lines = (escape(line, quote=False) for line in block.lines)
            out += _folded(block.summary, "<pre>", *lines, "</pre>")
    return "\n".join(out)


def _folded(summary: str, *lines: str) -> list[str]:
    return [f"<details><summary>{summary}</summary>", "", *lines, "", "</details>", ""]


def markdown_table(grid: Grid) -> str:
    """Without a newline at its end."""
    rows = [[plain(cell).replace("|", "\\|") for cell in row] for row in grid.rows]
    return Grid(grid.heads, rows, grid.numbers).table("pipe")


def plain(text: str) -> str:
    """Without what Markdown would take for a tag, a link or emphasis; `code` stays."""
    pieces = text.replace("&", "&amp;").replace("<", "&lt;").split("`")
    pieces[::2] = (re.sub(r"[\\*]|\](?=\()", r"\\\g<0>", piece) for piece in pieces[::2])
    return "`".join(pieces)


def number(value: float, form: str, half: float | None = None) -> str:
    """``value`` by a format, 0 without a minus; with ``half``, ``value ± half``."""
    text = f"{value:{form}}"
    text = text if float(text) else f"{0:{form}}"
    return text if half is None else f"{text} ± {half:{form.lstrip('+')}}"
