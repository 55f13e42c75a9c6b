"""All figures over some checkpoints, with their numbers beside them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import UserError
from ..evaluation.fairseq_options import quiet
from ..files import make_folder
from . import heads, patterns, rank, similarity
from .observed import Asked, need_split, open_systems

# Each draws its figure, and returns the names of the systems that it has nothing of.
FIGURES = {
    "rank": rank.draw,
    "patterns": patterns.draw,
    "similarity": similarity.draw,
    "segments": patterns.draw_segments,
    "heads": heads.draw,
}
_NEEDS = {
    "patterns": "it needs positions with a term in the logits",
    "similarity": "it needs a table of positions, at the input or as factors of the logits",
    "segments": "it needs an encoder-only model trained with --segment-encoding per-head",
}


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
    for figure in figures:
        without = FIGURES[figure](systems, asked, out)
        if without:
            whole = len(without) == len(systems)
            what = "nothing to draw of" if whole else "without"
            complaint = f"{figure}: {what} {', '.join(without)}; {_NEEDS[figure]}"
            if whole and len(figures) == 1:
                raise UserError(complaint)
            print(complaint, file=sys.stderr)
