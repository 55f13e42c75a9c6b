"""Content of a report, and its form as text, Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Generic, TypeVar, Union

import tabulate

from ..errors import printable

tabulate.MIN_PADDING = 0  # columns as wide as their content
_WIDEST, _LONGEST = 300, 4000  # characters of a cell and of an item in a terminal

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: title, text of a row's cell, and explanation for the legend."""

    title: str
    value: Callable[[Row], str]
    help: str = ""
    number: bool = True  # flush right


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Grid:
    """A table of texts; ``numbers``: columns set flush right (default: all but the first)."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[bool] = ()
    helps: Mapping[str, str] = field(default_factory=dict)

    @property
    def flush_right(self) -> Sequence[bool]:
        return self.numbers or [False, *[True] * (len(self.heads) - 1)]

    def table(self, form: str) -> str:
        """The table in a format of ``tabulate``: plain, pipe, ..."""
        sides = ["right" if number else "left" for number in self.flush_right]
        return tabulate.tabulate(
            self.rows, self.heads, tablefmt=form, colalign=sides, disable_numparse=True
        )


@dataclass(frozen=True)
class Items:
    """A list; a line that begins with two spaces belongs to the previous one."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Note:
    text: str


@dataclass(frozen=True)
class Commands:
    """Shell commands: omitted in a terminal, folded elsewhere."""

    summary: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Folded:
    """A table folded in Markdown and HTML, and shown in a terminal on request."""

    summary: str
    grid: Grid


@dataclass(frozen=True)
class Markup:
    """HTML for the page alone."""

    html: str


Block = Union[Heading, Grid, Items, Note, Commands, Folded, Markup]


def table(rows: Sequence[Row], columns: Iterable[Column[Row]]) -> Grid:
    """The columns of ``rows`` that are not empty."""
    cells = [(column, [column.value(row) for row in rows]) for column in columns]
    used = [(column, texts) for column, texts in cells if any(texts)]
    return Grid(
        [column.title for column, _ in used],
        list(zip(*(texts for _, texts in used), strict=True)),
        [column.number for column, _ in used],
        {column.title: column.help for column, _ in used if column.help},
    )


def legend(blocks: Iterable[Block]) -> list[str]:
    """The explanations of all columns shown, each once."""
    helps = (each.helps for each in blocks if isinstance(each, Grid))
    return [
        f"{title}: {text}" for title, text in {k: v for h in helps for k, v in h.items()}.items()
    ]


def text(blocks: Iterable[Block], *, verbose: bool = False) -> str:
    """Blocks for a terminal, ending in a newline; ``verbose``: with folded tables."""
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
    """Blocks as Markdown, ending in a newline; texts of rows are escaped."""
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
        elif isinstance(block, Commands):
            lines = (escape(line, quote=False) for line in block.lines)
            out += _folded(block.summary, "<pre>", *lines, "</pre>")
    return "\n".join(out)


def _folded(summary: str, *lines: str) -> list[str]:
    return [f"<details><summary>{summary}</summary>", "", *lines, "", "</details>", ""]


def markdown_table(grid: Grid) -> str:
    """The table without a newline at its end."""
    rows = [[plain(cell).replace("|", "\\|") for cell in row] for row in grid.rows]
    return Grid(grid.heads, rows, grid.numbers).table("pipe")


def plain(text: str) -> str:
    """``text`` with Markdown's tags, links and emphasis escaped; `code` stays."""
    pieces = text.replace("&", "&amp;").replace("<", "&lt;").split("`")
    pieces[::2] = (re.sub(r"[\\*]|\](?=\()", r"\\\g<0>", piece) for piece in pieces[::2])
    return "`".join(pieces)


def html(blocks: Iterable[Block]) -> str:
    """Blocks as HTML; texts of rows are escaped."""
    return "\n".join(line for block in blocks for line in _html(block))


def _html(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"<h3>{escape(block.text)}</h3>"
    elif isinstance(block, Grid):
        yield from _html_table(block)
    elif isinstance(block, Items):
        lines = (f"<li{' class=sub' * line.startswith('  ')}>{_code(line)}" for line in block.lines)
        yield f'<ul class="note">{"".join(lines)}</ul>'
    elif isinstance(block, Note):
        yield f'<p class="note">{_code(block.text)}</p>'
    elif isinstance(block, Markup):
        yield block.html
    else:
        yield f"<details><summary>{escape(block.summary)}</summary>"
        if isinstance(block, Folded):
            yield from _html_table(block.grid)
        else:
            yield f"<pre>{escape(chr(10).join(block.lines))}</pre>"
        yield "</details>"


def _html_table(grid: Grid) -> Iterator[str]:
    kinds = [' class="n"' if number else "" for number in grid.flush_right]
    yield '<div class="wide" role="region" aria-label="Table" tabindex="0"><table><thead><tr>'
    for head, kind in zip(grid.heads, kinds, strict=True):
        title = f' title="{escape(grid.helps[head])}"' if head in grid.helps else ""
        yield f'<th scope="col"{kind}{title}>{escape(head)}</th>'
    yield "</tr></thead><tbody>"
    for name, *cells in grid.rows:
        texts = (re.sub(r"(?<![\w.-])-(?=[\d.])", "−", escape(cell)) for cell in cells)
        pairs = zip(kinds[1:], texts, strict=True)
        row = "".join(f"<td{kind}>{cell}</td>" for kind, cell in pairs)
        yield f'<tr><th scope="row"><bdi>{escape(name)}</bdi></th>{row}</tr>'
    yield "</tbody></table></div>"


def _code(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text.strip()))


def number(value: float, form: str, half: float | None = None) -> str:
    """``value`` by a format, 0 without a minus; with ``half``, ``value ± half``."""
    text = f"{value:{form}}"
    text = text if float(text) else f"{0:{form}}"
    return text if half is None else f"{text} ± {half:{form.lstrip('+')}}"
