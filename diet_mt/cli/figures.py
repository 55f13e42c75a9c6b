"""The commands ``figures`` and ``theorems``; docstrings are their help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..figures.config import FigureConfig
from ..system.errors import UserError
from ..system.options import Command, Folder, Seed, argument, option
from .reports import TABLE_FORMATS, show

FIGURES = ("rank", "patterns", "similarity", "segments", "heads")


@dataclass(frozen=True, kw_only=True)
class Figures(Command):
    """Draws the figures of Chen et al. 2021 for trained checkpoints, and lists local heads.

        diet-mt figures checkpoints/diet_abs.1 checkpoints/diet_rel.1 \\
            --data data/multi30k.en-de/bin --out figures
        ... --only patterns heads
        diet-mt figures --out figures          # redraws them from the saved numbers

    CHECKPOINT is a translation model or a masked language model: a file, or a folder with a
    checkpoint_best.pt. Each figure is written as PNG, as SVG and, its numbers, as JSON lines:

        rank        rank and singular values of attention logits and of       figures 2 and 8
                    positional logits
        patterns    positional logits by head, as heat maps, or as curves     figures 4 and 7
                    if they depend only on the distance
        similarity  cosine similarity of positions, at the input and in       figure 5
                    the factors of attention
        segments    patterns over two segments of 16 tokens each              figure 6
        heads       local heads and their distances: a table on stdout

    Logits are computed in float64 by the model's own attention, including the biases of its
    projections. If a model has fewer positions than --rank-tokens or --positions, all models are
    shown over that smaller number. Rank plots and curves mark the length of the longest training
    sentence where they go beyond it. Three tiny models take half a minute.
    """

    checkpoints: Sequence[Path] = argument(
        "checkpoint file or folder (default: redraw the numbers saved in --out)",
        (),
        nargs="*",
        metavar="CHECKPOINT",
    )
    data: Path | None = option("binarized training data", None, metavar="BIN")
    out: Folder = option("output folder")
    only: Sequence[str] = option("figures to draw (default all)", FIGURES, choices=FIGURES)
    format: str = option("format of the tables", "text", choices=TABLE_FORMATS)
    config: FigureConfig

    def run(self) -> None:
        if self.checkpoints and not self.data:
            raise UserError("--data is missing: the binarized training data of the checkpoints")
        if not self.checkpoints and self.data:
            raise UserError("--data: give checkpoints, too")
        from ..figures.draw import draw, measure, saved

        if self.data:
            files = measure(self.checkpoints, self.data, self.out, self.only, self.config)
        elif self.config != FigureConfig():
            raise UserError("options of figures require checkpoints; saved numbers are fixed")
        else:
            files = saved(self.out, self.only)
        for file in files:
            if table := draw(file):
                show(table, self.format)


@dataclass(frozen=True, kw_only=True)
class Theorems(Command):
    """Checks the theorems of Chen et al. 2021 numerically, on random draws and on checkpoints.

        diet-mt theorems
        diet-mt theorems checkpoints/sinusoidal.1 checkpoints/diet_abs.1 \\
            --data data/multi30k.en-de/bin

    Theorem 1: with positions added at the input, the rank of a head's logits is at most the head
    size; with positions inside attention, it can be larger. Theorem 2: word and position embeddings
    that are added at the input have equal gradients, whereas position tables per head have
    different ones; this is also measured on checkpoints. For the ranks of checkpoints, use
    diet-mt figures --only rank. Prints text to stdout within seconds.
    """

    checkpoints: Sequence[Path] = argument(
        "checkpoint file or folder", (), nargs="*", metavar="CHECKPOINT"
    )
    data: Path | None = option("binarized data of the checkpoints", None, metavar="BIN")
    subset: str = option("split from which sentences are taken", "valid")
    seed: Seed = option("seed of the random draws", 1)

    def run(self) -> None:
        if bool(self.checkpoints) != bool(self.data):
            raise UserError("checkpoints and --data BIN must be given together")
        from ..figures.theorems import report

        print(report(self.checkpoints, self.data, self.subset, self.seed), end="")
