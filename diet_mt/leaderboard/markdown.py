"""The leaderboard as Markdown, for a README."""

from __future__ import annotations

from collections.abc import Iterable

from .commands import commands
from .notes import legend, remarks, signatures
from .standings import Section
from .tables import rows, standings_table


def markdown(sections: Iterable[Section]) -> str:
    """Tables with signatures and every command, ending in a newline."""
    sections, out = list(sections), []
    for section in sections:
        table = standings_table(section)
        out += [f"**{plain(section.group.title)}**", ""]
        out.append(table_line([column.title for column in table]))
        out.append(table_line(["---:" if column.number else "---" for column in table]))
        out += [table_line([plain(cell.text) for cell in row]) for row in rows(table)]
        out += ["", *(f"- {line}" for line in [*remarks(section), *signatures(section)])]
        out += ["", "<details><summary>The commands, ARCH for the system</summary>", "", "```"]
        out += [*commands(section.group), "```", "", "</details>", ""]
    return "\n".join([*out, " ".join(legend(sections)), ""])


def table_line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def plain(text: str) -> str:
    """Without what Markdown would take for the end of a cell, or HTML for a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
