"""What the leaderboard of translation shows, as blocks."""

from __future__ import annotations

from collections.abc import Sequence

from .commands import commands
from .notes import legend, remarks, signatures
from .render import Block, Commands, Folded, Grid, Heading, Items, Note
from .standings import Section
from .tables import Table, evaluations_table, rows, standings_table

EVALUATIONS = "Every evaluation: length, n-gram precisions, updates"
FOLDED = "The commands, ARCH for the system"
# What a reader in a hurry wants to see.
BRIEF = ("system", "BLEU", "±", "cluster", "length", "to sinusoidal", "p")


def board(sections: Sequence[Section]) -> list[Block]:
    """Tables with signatures and commands, and how to read them."""
    blocks: list[Block] = []
    for section in sections:
        blocks += [Heading(section.group.title), grid(standings_table(section))]
        blocks.append(Items([*remarks(section), *signatures(section)]))
        blocks.append(Folded(EVALUATIONS, grid(evaluations_table(section.group))))
        blocks.append(Commands(FOLDED, commands(section.group)))
    return [*blocks, *(Note(line) for line in [" ".join(legend(sections))] if line)]


def brief_board(sections: Sequence[Section]) -> list[Block]:
    """Headings and narrow tables alone."""
    blocks: list[Block] = []
    for section in sections:
        table = [column for column in standings_table(section) if column.title in BRIEF]
        blocks += [Heading(section.group.title), grid(table)]
    return blocks


def grid(table: Table) -> Grid:
    """A table as it is read."""
    return Grid(
        [column.title for column in table],
        [[cell.text for cell in row] for row in rows(table)],
        [column.number for column in table],
    )
