"""Figures: rows of what checkpoints have, and pictures and tables of such rows alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..evaluation.fairseq_options import quiet
from ..evaluation.json_rows import Row, read_rows, write_rows
from ..files import make_folder
from ..report.blocks import Block
from ..report.style import save
from .asked import Asked
from .heads import HeadRow, head_blocks, head_rows
from .looks import Pictures
from .observed import System, need_split, open_systems
from .pattern_pictures import pattern_pictures, segment_pictures
from .patterns import PatternRow, pattern_rows, segment_rows
from .rank import RankRow, rank_pictures, rank_rows
from .similarity import SimilarityRow, similarity_pictures, similarity_rows

_FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Figure:
    """``rows``: of systems, of the type ``row``; ``pictures`` and ``table``: of rows; ``needs``:
    what a system must have to have any.
    """

    row: type[Row]
    rows: Callable[[Sequence[System], Asked], list[Any]]
    pictures: Callable[[Sequence[Any]], Pictures] = lambda _: iter(())
    table: Callable[[Sequence[Any]], list[Block]] = lambda _: []
    needs: str = ""


FIGURES = {
    "rank": Figure(RankRow, rank_rows, rank_pictures),
    "patterns": Figure(
        PatternRow,
        pattern_rows,
        pattern_pictures,
        needs="it needs positions with a term in the logits",
    ),
    "similarity": Figure(
        SimilarityRow,
        similarity_rows,
        similarity_pictures,
        needs="it needs a table of positions, at the input or as factors of the logits",
    ),
    "segments": Figure(
        PatternRow,
        segment_rows,
        segment_pictures,
        needs="it needs an encoder-only model trained with --segment-encoding per-head",
    ),
    "heads": Figure(
        HeadRow, head_rows, table=head_blocks, needs="it needs heads whose keys are tokens"
    ),
}


def observe_all(
    checkpoints: Sequence[Path], data: Path, out: Path, figures: Sequence[str], asked: Asked
) -> list[Path]:
    """Writes the rows of each figure to ``FIGURE.jsonl`` in the folder ``out``; returns the files.

    Systems that a figure has nothing of are named on stderr. Raises UserError for checkpoints that
    cannot be loaded, for an unknown subset, and where no system has anything of the only figure.
    """
    quiet()
    systems = open_systems(checkpoints, data)
    for system in systems:
        need_split(system, asked.subset)
    make_folder(out)
    files = []
    for figure in figures:
        rows = FIGURES[figure].rows(systems, asked)
        having = {row.system for row in rows}
        without = [system.name for system in systems if system.name not in having]
        if without:
            what = "without" if rows else "nothing to draw of"
            complaint = f"{figure}: {what} {', '.join(without)}; {FIGURES[figure].needs}"
            if not rows and len(figures) == 1:
                raise UserError(complaint)
            print(complaint, file=sys.stderr)
        if rows:
            files.append(out / f"{figure}.jsonl")
            write_rows(files[-1], rows)
    return files


def kept(out: Path, figures: Sequence[str]) -> list[Path]:
    """The rows in the folder ``out``. Raises UserError where there are none of these figures."""
    files = [file for figure in figures if (file := out / f"{figure}.jsonl").is_file()]
    if not files:
        names = ", ".join(f"{figure}.jsonl" for figure in figures)
        raise UserError(f"{out}: no {names}; give the checkpoints that are to be drawn, and --data")
    return files


def draw(file: Path) -> list[Block]:
    """Draws the pictures of a figure's rows beside them, and returns its table, if it has one.

    Raises UserError for rows of another kind, or that do not fit together, and where a picture
    cannot be written.
    """
    figure = FIGURES[file.stem]
    rows = read_rows(figure.row, file)
    if not rows:
        raise UserError(f"{file}: no rows")
    try:
        for name, picture in figure.pictures(rows):
            save(picture, *(file.with_name(f"{name}.{kind}") for kind in _FORMATS))
        return figure.table(rows)
    except UserError:
        raise
    except (LookupError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(
            f"{file}: rows that do not fit together ({error!r}); write them again, of checkpoints"
        ) from None
