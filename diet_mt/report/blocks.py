"""Blocks of a report, and their formats: text, Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Generic, TypeVar, Union

import tabulate

from ..system.errors import UserError, printable
from ..system.files import raw_bytes, write_text

tabulate.MIN_PADDING = 0  # columns as wide as their content
_WIDEST, _LONGEST = 300, 4000  # maximum characters of a cell and of an item in a terminal

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table."""

    title: str
    value: Callable[[Row], object]  # of a row's cell; None: empty
    help: str = ""  # for the legend
    form: str = ""  # format of values
    number: bool = True  # flush right

    def text(self, row: Row) -> str:
        value = self.value(row)
        return "" if value is None else format(value, self.form)


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Table:
    """A table of texts; ``numbers``: whether columns are flush right (default: all but the first).

    ``helps``: title of a column -> explanation for the legend.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[bool] = ()
    helps: Mapping[str, str] = field(default_factory=dict)  # head -> explanation

    @property
    def flush_right(self) -> Sequence[bool]:
        return self.numbers or [False, *[True] * (len(self.heads) - 1)]

    def formatted(self, form: str, cell: Callable[[str], str]) -> str:
        """The table in a format of ``tabulate``, without a final newline."""
        sides = ["right" if number else "left" for number in self.flush_right]
        rows = [[cell(text) for text in row] for row in self.rows]
        return tabulate.tabulate(
            rows, self.heads, tablefmt=form, colalign=sides, disable_numparse=True
        )


@dataclass(frozen=True)
class Items:
    """A list; lines that begin with two spaces are subitems."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Note:
    text: str


@dataclass(frozen=True)
class Folded:
    """A collapsible table or list of commands; a terminal shows tables only on request."""

    summary: str
    content: Table | Sequence[str]


Block = Union[Heading, Table, Items, Note, Folded]


def table(rows: Sequence[Row], columns: Iterable[Column[Row]]) -> Table:
    """A table of ``rows``, without empty columns."""
    cells = [(column, [column.text(row) for row in rows]) for column in columns]
    used = [(column, texts) for column, texts in cells if any(texts)]
    return Table(
        [column.title for column, _ in used],
        list(zip(*(texts for _, texts in used), strict=True)),
        [column.number for column, _ in used],
        {column.title: column.help for column, _ in used if column.help},
    )


def legend(blocks: Iterable[Block]) -> list[str]:
    """The explanations of the columns of all tables, without repetition."""
    helps = {t: h for each in blocks if isinstance(each, Table) for t, h in each.helps.items()}
    return [f"{title}: {text}" for title, text in helps.items()]


def number(value: float, form: str, half: float | None = None) -> str:
    """``value`` in a format, without negative zero; with ``half``, ``value ± half``."""
    text = f"{value:{form}}"
    text = text if float(text) else f"{0:{form}}"
    return text if half is None else f"{text} ± {half:{form.lstrip('+')}}"


def text(blocks: Iterable[Block], *, verbose: bool = False) -> str:
    """Blocks for a terminal, with a final newline; ``verbose``: includes folded tables."""
    out: list[str] = []
    for block in blocks:
        match block:
            case Heading(heading):
                out += [*([""] if out else []), printable(heading)]
            case Table():
                out += _plain(block)
            case Folded(summary, Table() as content) if verbose:
                out += ["", f"  {summary}:", *_plain(content)]
            case Items(lines):
                out += [f"  {printable(line, _LONGEST)}" for line in lines]
            case Note(note):
                out += ["", note]
    return "\n".join([*out, ""])


def _plain(table: Table) -> list[str]:
    lines = table.formatted("plain", lambda cell: printable(cell, _WIDEST)).split("\n")
    return [f"  {line}".rstrip() for line in lines]


def markdown(blocks: Iterable[Block]) -> str:
    """Blocks as Markdown, with a final newline; texts of rows are escaped."""
    out: list[str] = []
    for block in blocks:
        match block:
            case Heading(heading):
                out += [f"**{_escaped(heading)}**"]
            case Table():
                out += [markdown_table(block)]
            case Items(lines):
                out += [re.sub(r"^( *)", r"\1- ", _escaped(line)) for line in lines]
            case Note(note):
                out += [_escaped(note)]
            case Folded(summary, content):
                out += [f"<details><summary>{summary}</summary>", ""]
                if isinstance(content, Table):
                    out += [markdown_table(content)]
                else:
                    out += ["<pre>", *(escape(line, quote=False) for line in content), "</pre>"]
                out += ["", "</details>"]
        out += [""]
    return "\n".join(out)


def markdown_table(table: Table) -> str:
    """The table as Markdown, without a final newline."""
    return table.formatted("pipe", lambda cell: _escaped(cell).replace("|", "\\|"))


def _escaped(text: str) -> str:
    """``text`` with tags, links and emphasis escaped, except in `code`."""
    pieces = text.replace("&", "&amp;").replace("<", "&lt;").split("`")
    pieces[::2] = (re.sub(r"[\\*]|\](?=\()", r"\\\g<0>", piece) for piece in pieces[::2])
    return "`".join(pieces)


def html(blocks: Iterable[Block]) -> str:
    """Blocks as HTML; texts of rows are escaped."""
    return "\n".join(map(_html, blocks))


def _html(block: Block) -> str:
    match block:
        case Heading(heading):
            return f"<h3>{escape(heading)}</h3>"
        case Items(lines):
            items = (f"<li{' class=sub' * line.startswith('  ')}>{_inline(line)}" for line in lines)
            return f'<ul class="note">{"".join(items)}</ul>'
        case Note(note):
            return f'<p class="note">{_inline(note)}</p>'
        case Folded(summary, content):
            if isinstance(content, Table):
                inner = _html(content)
            else:
                inner = f"<pre>{escape(chr(10).join(content))}</pre>"
            return f"<details><summary>{escape(summary)}</summary>\n{inner}\n</details>"
    kinds = [' class="n"' if number else "" for number in block.flush_right]
    out = ['<div class="wide" role="region" aria-label="Table" tabindex="0"><table><thead><tr>']
    for head, kind in zip(block.heads, kinds, strict=True):
        title = f' title="{escape(block.helps[head])}"' if head in block.helps else ""
        out.append(f'<th scope="col"{kind}{title}>{escape(head)}</th>')
    out.append("</tr></thead><tbody>")
    for name, *cells in block.rows:
        texts = (re.sub(r"(?<![\w.-])-(?=[\d.])", "−", escape(cell)) for cell in cells)
        row = "".join(f"<td{k}>{text}</td>" for k, text in zip(kinds[1:], texts, strict=True))
        out.append(f'<tr><th scope="row"><bdi>{escape(name)}</bdi></th>{row}</tr>')
    return "\n".join([*out, "</tbody></table></div>"])


def _inline(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text.strip()))


def put_section(file: Path, name: str, section: str, check: bool) -> None:
    """Replaces the section of a Markdown file between two lines such as

    <!-- results:begin diet-mt leaderboard --brief -->
    <!-- results:end -->

    The command is optional; ``check``: see :func:`put_text`. Raises :class:`UserError` without
    exactly one such section.
    """
    text, begin = raw_bytes(file).decode(), f"<!-- {name}:begin"
    pattern = rf"(^{begin}(?: [^\n]*?)? -->$).*?(^<!-- {name}:end -->$)"
    new, count = re.subn(
        pattern,
        lambda match: f"{match[1]}\n\n{section.rstrip()}\n\n{match[2]}",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    if count != 1 or text.count(begin) != 1:
        raise UserError(f"{file}: needs one line {begin} --> and one line <!-- {name}:end -->")
    put_text(file, new, check)


def put_text(file: Path, text: str, check: bool) -> None:
    """Writes ``file``; ``check``: raises :class:`UserError` if it differs, instead of writing."""
    same = file.exists() and raw_bytes(file) == text.encode()
    if not same and check:
        raise UserError(f"{file}: out of date; run the command again without --check")
    if not same:
        write_text(file, text)
