"""The leaderboard as one static page: no network, no library, readable without its script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ..evaluation.groups import BASELINE
from .commands import commands
from .notes import legend, remarks, signatures
from .picture import picture
from .standings import Section
from .tables import Cell, Column, Table, evaluations_table, rows, standings_table

_BESIDE = Path(__file__).parent
TITLE = "BLEU leaderboard"


def page(sections: Sequence[Section]) -> str:
    """The whole document. The same results give the same bytes: nothing in it is of today."""
    style = (_BESIDE / "page.css").read_text(encoding="utf-8")
    script = (_BESIDE / "page.js").read_text(encoding="utf-8")
    body = [_section(section, f"group-{n}") for n, section in enumerate(sections, start=1)]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{TITLE}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            *_header(sections),
            "<main>",
            *body,
            "</main>",
            *_footer(sections),
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and no style or script runs but the page's own two."""

    def source(text: str) -> str:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        return f"'sha256-{digest}'"

    return f"default-src 'none'; style-src {source(style)}; script-src {source(script)}"


def _header(sections: Sequence[Section]) -> list[str]:
    count = sum(len(section.group.results) for section in sections)
    out = [
        "<header>",
        f"<h1>{TITLE}</h1>",
        f"<p>Where position information goes, and what it does for translation: {count} trained "
        f"models, compared with <em>{BASELINE}</em> where nothing else differs.</p>",
    ]
    if len(sections) > 1:
        out.append('<nav aria-label="Test sets"><ul>')
        for number, section in enumerate(sections, start=1):
            conditions = section.group.conditions
            size = f" <small>{escape(conditions.size)}</small>" if conditions.size else ""
            out.append(f'<li><a href="#group-{number}">{escape(conditions.heading)}</a>{size}</li>')
        out.append('<li><a href="#reading">How to read this</a></li>')
        out.append("</ul></nav>")
    return [*out, "</header>"]


def _footer(sections: Sequence[Section]) -> list[str]:
    return [
        '<footer id="reading">',
        "<h2>How to read this</h2>",
        '<ul class="notes">',
        *(f"<li>{_with_code(note)}</li>" for note in legend(sections)),
        "<li>A click on the head of a column sorts by it, another one turns the order round.</li>",
        "</ul>",
        "</footer>",
    ]


def _section(section: Section, identity: str) -> str:
    group = section.group
    notes = [f"<li>{_with_code(note)}</li>" for note in remarks(section)]
    facts = [f"<li><code>{escape(fact)}</code></li>" for fact in signatures(section)]
    listed = "\n".join(commands(group))
    out = [
        f'<section id="{identity}" aria-labelledby="{identity}-heading">',
        f'<h2 id="{identity}-heading">{escape(group.conditions.heading)}</h2>',
        f'<p class="conditions">{escape(_details(section))}</p>',
        "<figure>",
        picture(section, identity),
        f"<figcaption>{_key(section)}</figcaption>",
        "</figure>",
        _table(standings_table(section), f"Systems, {group.conditions.heading}", sorted_by="BLEU"),
        '<ul class="notes">',
        *notes,
        *facts,
        "</ul>",
        *_fold("Every evaluation", _table(evaluations_table(group), "Every evaluation")),
        *_fold("The commands, ARCH for the system", f"<pre>{escape(listed)}</pre>"),
        "</section>",
    ]
    return "\n".join(out)


def _details(section: Section) -> str:
    """The title after the heading, which stands above."""
    group = section.group
    return group.title.removeprefix(group.conditions.heading + ", ")


def _key(section: Section) -> str:
    """What the marks of the picture are."""
    lines = section.group.lines
    parts = [_mark('<circle class="mean" cx="8" cy="8" r="5"/>') + "BLEU"]
    if any(len(line.results) > 1 for line in lines):
        parts.append(_mark('<circle class="seed" cx="8" cy="8" r="3"/>') + "each seed")
    bar = '<path class="bar" d="M1 8H15M1 4V12M15 4V12"/>'
    parts.append(_mark(bar) + "95 % interval")
    if any(standing.published for standing in section.standings):
        diamond = '<path class="published" d="M8 2 14 8 8 14 2 8Z"/>'
        parts.append(_mark(diamond) + "the paper’s")
    if section.group.baseline is not None:
        parts.append(_mark('<path class="baseline" d="M8 0V16"/>') + escape(BASELINE))
    return " ".join(f"<span>{part}</span>" for part in parts)


def _mark(shape: str) -> str:
    return f'<svg class="mark" width="16" height="16" aria-hidden="true">{shape}</svg> '


def _with_code(note: str) -> str:
    """Escaped; what stands between backquotes as code."""
    pieces = escape(note).split("`")
    return "".join(
        f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces)
    )


def _fold(summary: str, content: str) -> list[str]:
    return ["<details>", f"<summary>{summary}</summary>", content, "</details>"]


def _table(table: Table, caption: str, sorted_by: str = "") -> str:
    """Wider than the screen it scrolls in a frame of its own, which the keyboard reaches too."""
    name = escape(caption)
    out = [
        f'<div class="frame" role="region" aria-label="{name}" tabindex="0">',
        f"<table><caption>{name}</caption>",
        "<thead><tr>",
        *(_head(column, column.title == sorted_by) for column in table),
        "</tr></thead>",
        "<tbody>",
    ]
    for row in rows(table):
        cells = [_cell(*pair) for pair in zip(table, row, strict=True)]
        out.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*out, "</tbody></table>", "</div>"])


def _head(column: Column, is_sorted: bool) -> str:
    order = ' aria-sort="descending"' if is_sorted else ""
    first = "descending" if column.falling else "ascending"
    kind = "number" if column.number else "text"
    return f'<th scope="col" class="{kind}" data-first="{first}"{order}>{escape(column.title)}</th>'


def _cell(column: Column, cell: Cell) -> str:
    value = "" if cell.value is None else f' data-value="{escape(str(cell.value))}"'
    if column.title == "system":
        name = escape(cell.text).replace("_", "_<wbr>")  # on a phone two lines, if need be
        return f'<th scope="row"{value}>{name}</th>'
    kind = "number" if column.number else "text"
    return f'<td class="{kind}"{value}>{escape(cell.text)}</td>'
