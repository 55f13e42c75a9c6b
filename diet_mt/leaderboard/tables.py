"""Columns that every form of the leaderboard has in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TypeVar

from ..blocks import number
from ..evaluation.groups import BASELINE, Group, encoding_of
from ..evaluation.records import Result
from .standings import Section, Standing


@dataclass(frozen=True)
class Cell:
    """What is read, and what is sorted by; a cell without a value is sorted last."""

    text: str = ""
    value: float | str | None = None


@dataclass(frozen=True)
class Column:
    """``number``: set flush right; ``falling``: sorting begins with the largest value."""

    title: str
    cells: tuple[Cell, ...]
    number: bool = True
    falling: bool = True

    @property
    def kind(self) -> str:
        return "number" if self.number else "text"


Table = list[Column]
HOLM = "p (Holm)"  # title of a column
Shown = TypeVar("Shown")  # what a row is of
# Title, how a cell is made, and the rest of a Column.
Wanted = tuple[str, Callable[[Shown], Cell], bool, bool]


def rows(table: Table) -> list[tuple[Cell, ...]]:
    return list(zip(*(column.cells for column in table), strict=True))


def _number(value: float | None, form: str) -> Cell:
    return Cell() if value is None else Cell(format(value, form), value)


def _columns(of: Sequence[Shown], wanted: Iterable[Wanted[Shown]]) -> Table:
    """A row for each of ``of``. Columns that nothing is known for are left out."""
    columns = [Column(title, tuple(map(make, of)), *how) for title, make, *how in wanted]
    return [column for column in columns if any(cell.text for cell in column.cells)]


def standings_table(section: Section) -> Table:
    """One row for each standing."""
    return _columns(section.standings, _STANDING)


def _difference(value: float | None) -> Cell:
    """Of the baseline itself a plain 0."""
    if not value:
        return Cell() if value is None else Cell("0", 0.0)
    return Cell(number(value, "+.2f"), value)


def _lenpen(standing: Standing) -> Cell:
    """Where it was chosen: of each seed."""
    results = standing.line.results if standing.line else ()
    text = ", ".join(f"{each.seed}: {each.lenpen:g}" for each in results if each.lenpen_tried)
    return Cell(text, fmean(each.lenpen for each in results)) if text else Cell()


def _seeds(standing: Standing) -> Cell:
    results = standing.line.results if standing.line else ()
    text = ", ".join(f"{result.seed}: {result.bleu:.2f}" for result in results)
    return Cell(text, float(len(results))) if results else Cell()


def _parameters(standing: Standing) -> Cell:
    if not standing.line:
        return Cell()
    counts = sorted({result.parameters for result in standing.line.results})
    return Cell(", ".join(f"{count:,}" for count in counts), float(counts[-1]))


_STANDING: list[Wanted[Standing]] = [
    ("system", lambda s: Cell(s.name, s.name), False, False),
    ("BLEU", lambda s: _number(s.line.bleu if s.line else None, ".2f"), True, True),
    ("±", lambda s: _number(s.half_width, ".2f"), True, True),
    ("cluster", lambda s: _number(s.cluster, "d"), True, False),
    ("length", lambda s: _number(s.line.length_ratio if s.line else None, ".3f"), True, True),
    (f"to {BASELINE}", lambda s: _difference(s.gain), True, True),
    (HOLM, lambda s: Cell(s.p_text, s.p_value), True, False),
    ("paper", lambda s: _number(s.published.bleu if s.published else None, ".2f"), True, True),
    (
        f"paper, to {BASELINE}",
        lambda s: _difference(s.published.gain if s.published else None),
        *(True, True),
    ),
    ("chrF", lambda s: _number(s.line.chrf if s.line else None, ".2f"), True, True),
    ("roles", lambda s: _number(s.line.roles if s.line else None, ".1f"), True, True),
    ("BLEU of each seed", _seeds, False, True),
    ("length penalty", _lenpen, False, True),
    ("parameters", _parameters, True, False),
]


def evaluations_table(group: Group) -> Table:
    """One row for each result: what it was trained with and when it was measured."""
    names = (_word(line.name) for line in group.lines for _ in line.results)
    first = Column("system", tuple(names), False, False)
    return [first, *_columns(group.results, _EVALUATION)]


def _word(value: str) -> Cell:
    return Cell(value, value) if value else Cell()


def _count(value: int) -> Cell:
    """Empty for 0, which stands for what was not measured."""
    return Cell(f"{value:,}", float(value)) if value else Cell()


def _interval(result: Result) -> Cell:
    return Cell(number(result.bleu_mean, ".2f", result.bleu_ci), result.bleu_mean)


def _precision(result: Result, order: int) -> Cell:
    """The percentage of right n-grams."""
    known = result.precisions.split("/") if result.precisions else ()
    return Cell(known[order - 1], float(known[order - 1])) if known else Cell()


_EVALUATION: list[Wanted[Result]] = [
    ("seed", lambda r: Cell(str(r.seed), float(r.seed)), True, False),
    ("BLEU", lambda r: _number(r.bleu, ".2f"), True, True),
    ("bootstrap", _interval, True, True),
    ("length", lambda r: _number(r.length_ratio, ".3f"), True, True),
    *((f"{n}-grams", partial(_precision, order=n), True, True) for n in range(1, 5)),
    ("length penalties tried", lambda r: _word(r.lenpen_tried), False, False),
    ("chrF", lambda r: _number(r.chrf, ".2f"), True, True),
    ("updates", lambda r: _count(r.updates), True, True),
    ("target tokens seen", lambda r: _count(r.train_tokens), True, True),
    ("positions", lambda r: _word(encoding_of(r)), False, False),
    ("checkpoint", lambda r: _word(r.checkpoint_sha256[:8]), False, False),
    ("trained at", lambda r: _word(r.train_revision), False, False),
    ("evaluated at", lambda r: _word(r.revision), False, False),
    ("on", lambda r: _word(r.date), False, True),
]
