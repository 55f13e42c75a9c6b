"""Cosine similarity of positions, at the input and in the factors of attention (Chen et al. 2021,
figure 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..evaluation.json_rows import Row
from ..positions import CROSS, DECODER, ENCODER, AttentionPositions, PositionRange
from ..positions.factors import FactorBias
from ..report.style import color_of, pyplot
from . import FigureConfig
from .capture import TITLES, System, added_rows
from .patterns import DIVERGING, LEVELS

BINS = 40
_EDGES = np.linspace(-1, 1, BINS + 1)
_DIGITS = 4  # decimals of a cosine in a row
_COLUMNS = 4  # of the picture


@dataclass(frozen=True)
class SimilarityRow(Row):
    """Cosines of all pairs of different positions in ``layers`` x ``heads`` tables of vectors."""

    system: str
    arch: str
    place: str
    vectors: str  # input, queries or keys
    layers: int
    heads: int
    positions: int
    mean: float
    deviation: float
    histogram: list[int]  # pairs in each of BINS equal parts of -1 to 1
    by_distance: list[float]  # mean cosine of positions 0, 1, ... apart
    cosines: list[list[float]]  # of each pair, mean over tables

    @property
    def label(self) -> str:
        """``cross-attention, queries``; ``input of the encoder``."""
        return self.place if self.vectors == "input" else f"{self.place}, {self.vectors}"


Table = tuple[str, str, Tensor]  # place; input, queries or keys; vectors (L, H, n, R) in float64


def tables(system: System, positions: int) -> list[Table]:
    """Tables of positions: vectors added to the words, and factors of the positional logits. Equal
    input tables of encoder and decoder are listed once.
    """
    added = {
        kind: added_rows(stack, positions)[None]  # (1, 1, n, E)
        for kind, stack in system.stacks.items()
        if stack.embed_positions is not None
    }
    if len(added) == 2 and torch.equal(*added.values()):
        added = {"encoder and decoder": added[ENCODER]}
    every = [(f"input of the {kind}", "input", rows) for kind, rows in added.items()]
    spans = {kind: stack.token_positions.at(0, positions) for kind, stack in system.stacks.items()}
    for kind, stack in system.stacks.items():
        every += _factors(kind, stack.self_attn_positions, spans[kind], spans[kind])
        if kind == DECODER:
            every += _factors(CROSS, stack.encoder_attn_positions, spans[kind], spans[ENCODER])
    return every


def _factors(
    kind: str, own: AttentionPositions | None, queries: PositionRange, keys: PositionRange
) -> Iterator[Table]:
    if isinstance(own, FactorBias):
        for of, vectors in zip(("queries", "keys"), own.factors(queries, keys), strict=True):
            yield TITLES[kind], of, vectors.detach().double()


def similarity_rows(
    systems: Sequence[System], config: FigureConfig, positions: int
) -> list[SimilarityRow]:
    """A row for each table of each system."""
    return [_row(system, *table) for system in systems for table in tables(system, positions)]


def _row(system: System, place: str, of: str, vectors: Tensor) -> SimilarityRow:
    unit = F.normalize(vectors, dim=-1)
    cosines = unit @ unit.transpose(-1, -2)  # (L, H, n, n)
    layers, heads, positions, _ = cosines.shape
    pairs = cosines[..., ~torch.eye(positions, dtype=torch.bool)]
    counts, _ = np.histogram(pairs.clamp(-1, 1).numpy(), _EDGES)
    return SimilarityRow(
        system=system.name,
        arch=system.arch,
        place=place,
        vectors=of,
        layers=layers,
        heads=heads,
        positions=positions,
        mean=round(float(pairs.mean()), _DIGITS),
        deviation=round(float(pairs.std()), _DIGITS),
        histogram=counts.tolist(),
        by_distance=[
            round(float(cosines.diagonal(away, -2, -1).mean()), _DIGITS)
            for away in range(positions)
        ],
        cosines=[
            [round(value, _DIGITS) for value in line] for line in cosines.mean((0, 1)).tolist()
        ],
    )


def similarity_pictures(rows: Sequence[SimilarityRow]) -> Iterator[tuple[str, Any]]:
    """``similarity``: a heat map of each table, above a histogram of its cosines."""
    plt = pyplot()
    columns = min(_COLUMNS, len(rows))
    lines = -(-len(rows) // columns)
    figure, panels = plt.subplots(
        2 * lines, columns, figsize=(2 * columns + 1.5, 3 * lines + 0.9),
        squeeze=False, layout="constrained", height_ratios=[2.4, 1] * lines,
    )  # fmt: skip
    figure.suptitle("Cosine similarity of positions: mean over heads, and all pairs", fontsize=11)
    for panel in panels.flat:
        panel.axis("off")
    for number, row in enumerate(rows):
        line, column = divmod(number, columns)
        heat, bars = panels[2 * line, column], panels[2 * line + 1, column]
        image = heat.imshow(row.cosines, cmap=plt.get_cmap(DIVERGING, LEVELS), vmin=-1, vmax=1)
        heat.set_title(f"{row.system}\n{row.label}", fontsize=8, pad=3)
        bars.stairs(row.histogram, _EDGES, fill=True, color=color_of(row.system))
        for panel in (heat, bars):
            panel.axis("on")
            panel.tick_params(labelsize=7, length=2)
        bars.set(xticks=[-1, 0, 1], yticks=[])
        bars.set_ylabel("pairs", fontsize=7)
    bar = figure.colorbar(image, ax=panels, shrink=0.5, aspect=30, pad=0.01)
    bar.set_label("cosine", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    figure.supxlabel("above: position; below: cosine", fontsize=9)
    figure.supylabel("position", fontsize=9)
    yield "similarity", figure
