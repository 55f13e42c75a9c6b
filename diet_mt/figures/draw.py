"""All figures over some checkpoints, with their numbers beside them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..blocks import Note, text
from ..errors import UserError
from ..evaluation.fine_tuned import quiet
from ..files import make_folder
from . import heads, patterns, rank, similarity
from .observed import System, need_split, open_systems


@dataclass(frozen=True)
class Asked:
    """What is looked at. ``subset``: split that sentences are taken from."""

    subset: str
    sentences: int
    rank_tokens: int  # n of the matrices whose rank is taken
    positions: int  # n of the heat maps
    near: int  # tokens: what is near, where heads are called local


def draw_all(
    checkpoints: Sequence[Path], data: Path, out: Path, figures: Sequence[str], asked: Asked
) -> None:
    """Draws ``figures`` into the folder ``out``, and prints the table of ``heads``.

    Systems that a figure has nothing of are named on stderr. Raises UserError for checkpoints that
    cannot be loaded, for an unknown subset, and where no system has anything of a figure.
    """
    quiet()
    systems = open_systems(checkpoints, data)
    for system in systems:
        need_split(system, asked.subset)
    make_folder(out)
    names = ", ".join(system.name for system in systems)
    for figure in figures:
        without = FIGURES[figure](systems, out, asked)
        if without == names:
            complaint = f"{figure}: nothing to draw of {names}; {_NEEDS[figure]}"
            if len(figures) == 1:
                raise UserError(complaint)
            print(complaint, file=sys.stderr)
        elif without:
            print(f"{figure}: without {without}; {_NEEDS[figure]}", file=sys.stderr)


_NEEDS = {
    "patterns": "it needs positions with a term in the logits",
    "similarity": "it needs a table of positions, at the input or as factors of the logits",
    "segments": "it needs an encoder-only model trained with --segment-encoding per-head",
}


def _rank(systems: Sequence[System], out: Path, asked: Asked) -> str:
    each = (
        rank.rank_rows(one, asked.subset, asked.rank_tokens, asked.sentences) for one in systems
    )
    rank.draw([row for rows in each for row in rows], out)
    return ""


def _patterns(systems: Sequence[System], out: Path, asked: Asked) -> str:
    return patterns.draw(systems, asked.subset, asked.positions, asked.sentences, out)


def _similarity(systems: Sequence[System], out: Path, asked: Asked) -> str:
    return similarity.draw(systems, asked.positions, out)


def _segments(systems: Sequence[System], out: Path, asked: Asked) -> str:
    return patterns.draw_segments(systems, asked.subset, asked.sentences, out)


def _heads(systems: Sequence[System], out: Path, asked: Asked) -> str:
    subset, tokens, count, near = asked.subset, asked.positions, asked.sentences, asked.near
    looks = (heads.head_rows(one, subset, tokens, count, near) for one in systems)
    table = heads.draw([row for rows in looks for row in rows], out)
    print(text([table, Note(heads.explained(near))]), end="")
    return ""


# Each draws its figure, and returns the systems that it has nothing of.
FIGURES = {
    "rank": _rank,
    "patterns": _patterns,
    "similarity": _similarity,
    "segments": _segments,
    "heads": _heads,
}
