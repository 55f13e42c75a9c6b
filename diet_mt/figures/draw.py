"""Figures: rows measured on checkpoints, and pictures and tables of saved rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..evaluation.fairseq_options import quiet
from ..evaluation.json_rows import Row, read_rows, write_rows
from ..report.blocks import Block
from ..report.style import save
from ..system.errors import UserError
from ..system.files import make_folder
from . import FigureConfig
from .capture import System, fitting, need_split, open_systems
from .heads import HeadRow, head_blocks, head_rows
from .patterns import SEGMENT_TOKENS, PatternRow, pattern_pictures, pattern_rows, segment_pictures
from .rank import RankRow, rank_pictures, rank_rows
from .similarity import SimilarityRow, similarity_pictures, similarity_rows

_FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Figure:
    """Functions that measure and draw one figure."""

    row: type[Row]
    tokens: Callable[[FigureConfig], int]  # length of sequences, if all models support it
    rows: Callable[[Sequence[System], FigureConfig, int], list[Any]]
    pictures: Callable[[Sequence[Any]], Iterable[tuple[str, Any]]] = lambda _: ()  # with file names
    table: Callable[[Sequence[Any]], list[Block]] = lambda _: []
    needs: str = ""  # requirement for a system to have rows


_positions = attrgetter("positions")
FIGURES = {
    "rank": Figure(RankRow, attrgetter("rank_tokens"), rank_rows, rank_pictures),
    "patterns": Figure(
        PatternRow,
        _positions,
        pattern_rows,
        pattern_pictures,
        needs="positions with a term in the logits",
    ),
    "similarity": Figure(
        SimilarityRow,
        _positions,
        similarity_rows,
        similarity_pictures,
        needs="a table of positions, at the input or as factors of the logits",
    ),
    "segments": Figure(
        PatternRow,
        lambda _: SEGMENT_TOKENS,
        partial(pattern_rows, segments=True),
        segment_pictures,
        needs="an encoder-only model trained with --segment-encoding per-head",
    ),
    "heads": Figure(
        HeadRow, _positions, head_rows, table=head_blocks, needs="heads whose keys are tokens"
    ),
}


def measure(
    checkpoints: Sequence[Path], data: Path, out: Path, figures: Sequence[str], config: FigureConfig
) -> list[Path]:
    """Writes the rows of each figure to ``FIGURE.jsonl`` in the folder ``out``; returns the files.

    Lists systems without rows on stderr. Raises :class:`UserError` for a single figure without any.
    """
    quiet()
    systems = open_systems(checkpoints, data)
    for system in systems:
        need_split(system, config.subset)
    make_folder(out)
    files = []
    for figure in figures:
        tokens = fitting(systems[0], FIGURES[figure].tokens(config), figure)
        rows = FIGURES[figure].rows(systems, config, tokens)
        shown = {row.system for row in rows}
        if without := [system.name for system in systems if system.name not in shown]:
            complaint = f"{figure}: without {', '.join(without)}; it needs {FIGURES[figure].needs}"
            if not rows and len(figures) == 1:
                raise UserError(complaint)
            print(complaint, file=sys.stderr)
        if rows:
            files.append(out / f"{figure}.jsonl")
            write_rows(files[-1], rows)
    return files


def saved(out: Path, figures: Sequence[str]) -> list[Path]:
    """Files of rows in ``out``, plain or gzipped. Raises :class:`UserError` if there are none."""
    names = [f"{figure}.jsonl" for figure in figures]
    either = [[out / name, out / f"{name}.gz"] for name in names]
    files = [file for pair in either if (file := next(filter(Path.is_file, pair), None))]
    if not files:
        raise UserError(f"{out}: no {', '.join(names)}; give checkpoints and --data")
    return files


def draw(file: Path) -> list[Block]:
    """Draws the pictures of a file of rows next to it; returns its table, if it has one."""
    figure = FIGURES[file.name.partition(".")[0]]
    rows = read_rows(figure.row, file)
    for name, picture in figure.pictures(rows):
        save(picture, *(file.with_name(f"{name}.{kind}") for kind in _FORMATS))
    return figure.table(rows)
