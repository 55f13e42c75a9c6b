"""``diet-mt figures`` and ``theorems``: a class each, whose docstring is the help."""

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
    """Draws trained positions as Chen et al. 2021 do, and lists the local heads.

        diet-mt figures checkpoints/diet_abs.1 checkpoints/diet_rel.1 \\
            --data data/multi30k.en-de/bin --out figures
        ... --only patterns heads
        diet-mt figures --out figures          # the same pictures, from the numbers in this folder

    CHECKPOINT is a file, or a folder with a checkpoint_best.pt, of a translation or masked language
    model. Each figure is a PNG, an SVG, and its numbers as JSON lines:

        rank        of logits and positional logits; spectrum: their          paper, figures 2 and 8
                    singular values
        patterns    positional logits by head: heat maps, and curves if       figures 4 and 7
                    they depend on the distance alone
        similarity  between positions, at the input and in factors            figure 5
        segments    patterns over 32 tokens, the second segment from 16 on    figure 6
        heads       local heads, and their distances: a table on stdout

    The logits are those of the model's own attention, in float64, the biases of its projections
    included. With a model of fewer positions than --rank-tokens or --positions, all are shown over
    its number. Rank and curves mark the number of positions in training, the longest sentence of
    the training split, if they show more. Time: half a minute for three tiny models.
    """

    checkpoints: Sequence[Path] = argument(
        "file, or its folder; none: pictures of the numbers in --out",
        (),
        nargs="*",
        metavar="CHECKPOINT",
    )
    data: Path | None = option("binarized data of their training", None, metavar="BIN")
    out: Folder = option("folder of pictures and numbers")
    only: Sequence[str] = option("figures to draw (default all)", FIGURES, choices=FIGURES)
    format: str = option("format of the tables", "text", choices=TABLE_FORMATS)
    config: FigureConfig

    def run(self) -> None:
        if self.checkpoints and not self.data:
            raise UserError("--data: give the binarized data that the checkpoints were trained on")
        if not self.checkpoints and self.data:
            raise UserError("--data: only with checkpoints; without, pictures show --out's numbers")
        from ..figures.draw import draw, measure, saved

        if self.data:
            files = measure(self.checkpoints, self.data, self.out, self.only, self.config)
        elif self.config != FigureConfig():
            raise UserError("without checkpoints, pictures show --out's numbers as they are")
        else:
            files = saved(self.out, self.only)
        for file in files:
            if table := draw(file):
                show(table, self.format)


@dataclass(frozen=True, kw_only=True)
class Theorems(Command):
    """The theorems of Chen et al. 2021 as numbers, on random draws and on checkpoints.

        diet-mt theorems
        diet-mt theorems checkpoints/sinusoidal.1 checkpoints/diet_abs.1 \\
            --data data/multi30k.en-de/bin

    Theorem 1: positions added at the input bound the rank of a head's logits by its size, positions
    in attention do not. Theorem 2: tables of words and positions that are added at the input have
    the same gradients, tables of heads have gradients of their own; this of checkpoints, too. Their
    ranks are a figure: diet-mt figures --only rank. Text on stdout. Time: seconds.
    """

    checkpoints: Sequence[Path] = argument(
        "file, or its folder", (), nargs="*", metavar="CHECKPOINT"
    )
    data: Path | None = option("their binarized data", None, metavar="BIN")
    subset: str = option("part of the data, for sentences", "valid")
    seed: Seed = option("seed of the draws", 1)

    def run(self) -> None:
        if bool(self.checkpoints) != bool(self.data):
            raise UserError("checkpoints and --data BIN: give both, or neither")
        from ..figures.theorems import report

        print(report(self.checkpoints, self.data, self.subset, self.seed), end="")
