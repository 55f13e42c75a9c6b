"""The leaderboard for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from .notes import legend, remarks, signatures
from .standings import Section
from .tables import Table, standings_table


def text(sections: Iterable[Section]) -> str:
    """Tables with their signatures, and under them how to read them."""
    sections, out = list(sections), []
    for section in sections:
        out.append(section.group.title)
        out += [f"  {line}" for line in _lines(standings_table(section))]
        out += [f"  {line}" for line in [*remarks(section), *signatures(section)]]
        out.append("")
    return "\n".join([*out, *legend(sections), ""])


def _lines(table: Table) -> list[str]:
    """Header and rows, all of one length."""
    columns = []
    for column in table:
        cells = [column.title, *(cell.text for cell in column.cells)]
        width = max(len(cell) for cell in cells)
        columns.append(
            [cell.rjust(width) if column.number else cell.ljust(width) for cell in cells]
        )
    return ["  ".join(line) for line in zip(*columns, strict=True)]
