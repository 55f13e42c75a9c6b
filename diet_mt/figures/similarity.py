"""Cosine similarity between positions, at the input and in the factors of attention (Chen et al.
2021, figure 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..drawing import color_of, pyplot
from ..evaluation.json_rows import Row, write_rows
from ..positions import CROSS, DECODER, ENCODER, AttentionPositions, Span
from ..positions.factors import FactorBias
from .looks import DIVERGING, TITLES, keep
from .observed import Asked, System, added_rows, fitting

BINS = 40
_COLUMNS = 4  # of the picture


@dataclass(frozen=True)
class SimilarityRow(Row):
    """One table of vectors, one for each position: cosines of all pairs of different positions.

    ``vectors`` is input, queries or keys; ``layers`` and ``heads`` tables are pooled.
    ``histogram``: pairs in each of ``BINS`` equal parts of -1 to 1; ``by_distance``: the mean
    cosine of positions 0, 1, ... apart.
    """

    system: str
    arch: str
    place: str
    vectors: str
    layers: int
    heads: int
    positions: int
    mean: float
    deviation: float
    histogram: list[int]
    by_distance: list[float]


@dataclass(frozen=True)
class Table:
    """``vectors`` (L, H, n, R), in float64."""

    place: str
    of: str  # input, queries or keys
    vectors: Tensor

    @property
    def cosines(self) -> Tensor:
        """(L, H, n, n)."""
        unit = F.normalize(self.vectors, dim=-1)
        return unit @ unit.transpose(-1, -2)


def tables(system: System, positions: int) -> list[Table]:
    """The tables of positions that a model has: what it adds to the words, and the factors of
    logits that are a product of two. What encoder and decoder have alike is there once.
    """
    added = {
        kind: added_rows(stack, positions)[None]  # (1, 1, n, E)
        for kind, stack in system.stacks.items()
        if stack.embed_positions is not None
    }
    if len(added) == 2 and torch.equal(*added.values()):
        added = {"encoder and decoder": added[ENCODER]}
    found = [Table(f"input of the {kind}", "input", rows) for kind, rows in added.items()]
    spans = {kind: stack.token_positions.at(0, positions) for kind, stack in system.stacks.items()}
    for kind, stack in system.stacks.items():
        found += _factors(kind, stack.self_attn_positions, spans[kind], spans[kind])
        if kind == DECODER:
            found += _factors(CROSS, stack.encoder_attn_positions, spans[kind], spans[ENCODER])
    return found


def _factors(
    kind: str, own: AttentionPositions | None, queries: Span, keys: Span
) -> Iterator[Table]:
    if not isinstance(own, FactorBias):
        return
    found = own.factors(queries, keys)
    for of, vectors in zip(("queries", "keys"), found, strict=True):
        yield Table(TITLES[kind], of, vectors.detach().double())


def row(system: System, table: Table) -> SimilarityRow:
    cosines = table.cosines
    layers, heads, positions, _ = cosines.shape
    pairs = cosines[..., ~torch.eye(positions, dtype=torch.bool)]
    counts, _ = np.histogram(pairs.clamp(-1, 1).numpy(), BINS, (-1, 1))
    return SimilarityRow(
        system=system.name,
        arch=system.arch,
        place=table.place,
        vectors=table.of,
        layers=layers,
        heads=heads,
        positions=positions,
        mean=round(float(pairs.mean()), 4),
        deviation=round(float(pairs.std()), 4),
        histogram=counts.tolist(),
        by_distance=[
            round(float(cosines.diagonal(away, -2, -1).mean()), 4) for away in range(positions)
        ],
    )


def draw(systems: Sequence[System], asked: Asked, out: Path) -> list[str]:
    """Writes ``similarity.jsonl`` and the picture ``similarity``. Returns the systems that have no
    such table.
    """
    positions = fitting(systems[0], asked.positions, "similarity")
    shown = {system.name: tables(system, positions) for system in systems}
    rows = [row(system, table) for system in systems for table in shown[system.name]]
    if rows:
        write_rows(numbers := out / "similarity.jsonl", rows)
        each = [(name, table) for name, own in shown.items() for table in own]
        keep(_picture(each), numbers, "similarity")
    return [name for name, own in shown.items() if not own]


def _picture(shown: Sequence[tuple[str, Table]]) -> Any:
    """For each table of a system a heat map, and under it how often each cosine is found."""
    plt = pyplot()
    columns = min(_COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    figure, panels = plt.subplots(
        2 * rows, columns, figsize=(2 * columns + 1.5, 3 * rows + 0.9),
        squeeze=False, layout="constrained", height_ratios=[2.4, 1] * rows,
    )  # fmt: skip
    title = "Cosine similarity of positions: mean over heads, and all pairs"
    figure.suptitle(title, fontsize=11)
    for panel in panels.flat:
        panel.axis("off")
    for number, (name, table) in enumerate(shown):
        line, column = divmod(number, columns)
        heat, bars = panels[2 * line, column], panels[2 * line + 1, column]
        cosines = table.cosines
        image = heat.imshow(cosines.mean((0, 1)).numpy(), cmap=DIVERGING, vmin=-1, vmax=1)
        heat.set_title(f"{name}\n{_said(table)}", fontsize=8, pad=3)
        pairs = cosines[..., ~torch.eye(cosines.size(-1), dtype=torch.bool)].flatten()
        bars.hist(pairs.clamp(-1, 1).numpy(), bins=BINS, range=(-1, 1), color=color_of(name))
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
    return figure


def _said(table: Table) -> str:
    """``cross-attention, queries``; ``input of the encoder``."""
    return table.place if table.of == "input" else f"{table.place}, {table.of}"
