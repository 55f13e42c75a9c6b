"""Tables and what is said around them, and how a terminal and Markdown show both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Union

import tabulate

tabulate.MIN_PADDING = 0  # columns are as wide as what is in them


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


Block = Union[Heading, Grid, Items, Note, Commands]


def text(blocks: Iterable[Block]) -> str:
    """For a terminal, ending in a newline."""
    out: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            out += [*([""] if out else []), block.text]
        elif isinstance(block, Grid):
            out += [f"  {line}".rstrip() for line in block.table("plain").split("\n")]
        elif isinstance(block, Items):
            out += [f"  {line}" for line in block.lines]
        elif isinstance(block, Note):
            out += ["", block.text]
    return "\n".join([*out, ""])


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
        else:
            lines = (escape(line, quote=False) for line in block.lines)
            out += [f"<details><summary>{block.summary}</summary>", "", "<pre>", *lines]
            out += ["</pre>", "", "</details>", ""]
    return "\n".join(out)


def markdown_table(grid: Grid) -> str:
    """Without a newline at its end."""
    rows = [[plain(cell).replace("|", "\\|") for cell in row] for row in grid.rows]
    return Grid(grid.heads, rows, grid.numbers).table("pipe")


def plain(text: str) -> str:
    """Without what Markdown would take for a tag or a comment."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
