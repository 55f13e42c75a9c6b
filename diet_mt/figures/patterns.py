"""Positional logits of heads: heat maps, and curves over distances (Chen et al. 2021, figures 4, 6
and 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Union

import numpy as np
import torch
from torch import Tensor

from ..evaluation.json_rows import Row
from ..positions import DECODER, KINDS
from ..report.style import pyplot
from . import FigureConfig
from .capture import TITLES, System, joined, record

# Figure 6: sentences of 32 tokens, with the second segment from position 16.
SEGMENT_TOKENS, BORDER = 32, 16
_DIGITS = 4  # significant digits of a logit in a row
_ROUNDING = 1e-9  # maximum difference along a diagonal, relative to the largest entry

# Colours of heads, distinct in all kinds of colour vision (Okabe & Ito 2008).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DIVERGING, LEVELS = "RdBu_r", 128  # ColorBrewer's, also for colour-blind readers
# Labels along the columns and rows of a matrix of logits.
_AXES = {
    "encoder": ("position j of the key", "position i of the query"),
    "decoder": ("target position j", "target position i"),
    "cross": ("source position j", "target position i"),
}


@dataclass(frozen=True)
class PatternRow(Row):
    """The positional logits of one head.

    Logits that depend only on the distance i - j are in ``by_distance``, from ``first_distance``;
    others are in ``values``, a list for each query i, with None at keys that causal attention
    masks. Logits that depend on words are means over ``sentences``, which is 1 otherwise.
    ``trained``: tokens of queries and of keys in the longest training sentences; empty: unknown.
    """

    system: str
    arch: str
    attention: str
    layers: list[int]  # from 1; several if their logits are equal
    head: int  # from 1
    tokens: int
    sentences: int
    segments: bool  # includes terms of segments, the second one from BORDER
    first_distance: int
    by_distance: list[float]
    values: list[list[Union[float, None]]]
    trained: list[int] = field(default_factory=list)
    mixes_keys: bool = False  # keys are mixtures of tokens

    @property
    def matrix(self) -> Tensor:
        """(T, S), NaN at keys that causal attention masks."""
        if self.values:
            closed = float("nan")
            return torch.tensor([[closed if v is None else v for v in row] for row in self.values])
        places = torch.arange(self.tokens)
        away = places[:, None] - places - self.first_distance
        line = torch.tensor(self.by_distance)
        return line[away.clamp(min=0)].masked_fill(away < 0, torch.nan)


@dataclass(frozen=True)
class Pattern:
    """Positional ``logits``, (H, T, S), of ``layers`` (from 1) in which they are equal."""

    kind: str
    layers: list[int]
    logits: Tensor
    sentences: int
    mixes_keys: bool = False

    @property
    def curves(self) -> tuple[range, Tensor] | None:
        """Distances i - j that occur, and their logits, (H, distances); None if the logits do not
        depend only on the distance.
        """
        values = None if self.mixes_keys else by_distance(self.logits)
        if values is None:
            return None
        queries, keys = self.logits.shape[-2:]
        first = 0 if self.kind == DECODER else 1 - keys
        return range(first, queries), values[:, first + keys - 1 :]


def by_distance(matrices: Tensor) -> Tensor | None:
    """The entries of Toeplitz ``matrices`` (..., T, S) at distances i - j from 1 - S to T - 1,
    (..., T + S - 1); None if entries do not depend only on the distance.
    """
    change = matrices[..., 1:, 1:] - matrices[..., :-1, :-1]
    if change.numel() and change.abs().max() > _ROUNDING * matrices.abs().max():
        return None
    return torch.cat([matrices[..., 0, :].flip(-1), matrices[..., 1:, 0]], -1)


def patterns(
    system: System, subset: str, tokens: int, count: int, *, segments: bool = False
) -> list[Pattern]:
    """The positional logits of all attention modules that have some, over ``tokens`` positions.

    ``count``: sentences for the mean of logits that depend on words. ``segments``: includes terms
    of segments, the second one from BORDER, and omits modules without them.
    """
    given = joined(system, subset, tokens, count)
    if segments:
        border = torch.arange(tokens) >= BORDER
        given["segment_ids"] = border.long().expand_as(given["src_tokens"])
    every: list[Pattern] = []
    for call in record(system, given):
        logits = call.positional(segments=segments)  # (B, H, T, S)
        if not logits.any() or (segments and call.call.segments is None):
            continue
        same = bool((logits == logits[:1]).all())
        mean = logits[0] if same else logits.mean(0)
        last = every[-1] if every and every[-1].kind == call.kind else None
        if last is not None and torch.equal(last.logits, mean):
            last.layers.append(call.layer + 1)
        else:
            count = 1 if same else len(logits)
            mixes_keys = call.call.positions.mixes_keys
            every.append(Pattern(call.kind, [call.layer + 1], mean, count, mixes_keys))
    return every


def pattern_rows(
    systems: Sequence[System], config: FigureConfig, tokens: int, *, segments: bool = False
) -> list[PatternRow]:
    """A row for each head with positional logits; ``segments``: of encoder-only models with terms
    of segments.
    """
    return [
        row
        for system in systems
        if not (segments and system.translates)
        for pattern in patterns(system, config.subset, tokens, config.sentences, segments=segments)
        for row in _rows(system, pattern, segments)
    ]


def _rows(system: System, pattern: Pattern, segments: bool) -> Iterator[PatternRow]:
    distances, values = pattern.curves or (range(0), None)
    shown = pattern.logits
    if pattern.kind == DECODER:
        behind = torch.ones_like(shown, dtype=torch.bool).triu(1)
        shown = shown.masked_fill(behind, torch.nan)
    for head, matrix in enumerate(shown):
        yield PatternRow(
            system=system.name,
            arch=system.arch,
            attention=pattern.kind,
            layers=pattern.layers,
            head=head + 1,
            tokens=matrix.size(0),
            sentences=pattern.sentences,
            segments=segments,
            first_distance=distances.start,
            by_distance=[] if values is None else [_short(v) for v in values[head].tolist()],
            values=[] if values is not None else [
                [None if v != v else _short(v) for v in row] for row in matrix.tolist()
            ],
            trained=list(system.trained.get(pattern.kind, ())),
            mixes_keys=pattern.mixes_keys,
        )  # fmt: skip


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def pattern_pictures(rows: Sequence[PatternRow]) -> Iterator[tuple[str, Any]]:
    """``distance.SYSTEM``, curves of logits that depend only on the distance, and
    ``patterns.SYSTEM.ATTENTION``, heat maps of others.
    """
    for system in dict.fromkeys(row.system for row in rows):
        own = [row for row in rows if row.system == system]
        curved = [row for row in own if row.by_distance]
        for kind in dict.fromkeys(row.attention for row in own if not row.by_distance):
            heads = [row for row in own if row.attention == kind]
            title = f"{system}: positional logits of {TITLES[kind]}"
            if (sentences := max(row.sentences for row in heads)) > 1:
                title += f", mean over {sentences} sentences"
            yield f"patterns.{system}.{kind}", _heat_maps(heads, title)
        if curved:
            yield f"distance.{system}", _curves(system, curved)


def segment_pictures(rows: Sequence[PatternRow]) -> Iterator[tuple[str, Any]]:
    """``segments.SYSTEM``, heat maps of positions and segments."""
    for system in dict.fromkeys(row.system for row in rows):
        own = [row for row in rows if row.system == system]
        title = f"{system}: positions and segments, the second one from {BORDER} on"
        yield f"segments.{system}", _heat_maps(own, title, border=BORDER)


def _tables(rows: Sequence[PatternRow]) -> dict[str, list[PatternRow]]:
    """Title -> heads of layers with equal positional logits."""
    tables = {}
    for layers, own in groupby(rows, key=lambda row: row.layers):
        several = f"layers {layers[0]}-{layers[-1]}"
        tables[several if len(layers) > 1 else f"layer {layers[0]}"] = list(own)
    return tables


def _heat_maps(rows: Sequence[PatternRow], title: str, border: int | None = None) -> Any:
    """A line of panels, one per head, for each group of layers. The common colour scale ends at the
    99.5th percentile of absolute values. ``border``: first position of the second segment.
    """
    plt, tables = pyplot(), _tables(rows)
    columns = max(map(len, tables.values()))
    values = np.abs(np.concatenate([row.matrix.numpy().ravel() for row in rows]))
    values = values[np.isfinite(values)]
    widest = max(float(np.quantile(values, 0.995)), 1e-12)
    size = max(1.0, min(1.9, 13 / columns))  # inches
    figure, panels = plt.subplots(
        len(tables), columns, figsize=(size * columns + 1.6, size * len(tables) + 0.85),
        squeeze=False, sharex=True, sharey=True, layout="constrained",
    )  # fmt: skip
    style = {
        "cmap": plt.get_cmap(DIVERGING, LEVELS).with_extremes(bad="0.9"),
        "norm": plt.Normalize(-widest, widest),
        "interpolation": "nearest",
    }
    for (label, own), line in zip(tables.items(), panels, strict=True):
        for row, panel in zip(own, line, strict=True):
            image = panel.imshow(row.matrix.numpy(), **style)
            panel.set_title(f"{label}, head {row.head}", fontsize=8, pad=3)
            panel.tick_params(labelsize=7, length=2)
            if border is not None:
                for mark in (panel.axhline, panel.axvline):
                    mark(border - 0.5, color="0.25", linewidth=0.8, linestyle="--")
    x, y = _AXES[rows[0].attention]
    figure.suptitle(title, fontsize=11)
    figure.supxlabel("mixed key" if rows[0].mixes_keys else x, fontsize=9)
    figure.supylabel(y, fontsize=9)
    beyond = "both" if values.max() > widest else "neither"
    scale = figure.colorbar(image, ax=panels, shrink=0.8, aspect=30, pad=0.01, extend=beyond)
    scale.set_label("added to the logit", fontsize=9)
    scale.ax.tick_params(labelsize=8)
    return figure


def _curves(system: str, rows: Sequence[PatternRow]) -> Any:
    """A panel for each kind of attention and group of layers, with a curve for each head. Dotted
    lines mark the largest distances of training.
    """
    kinds = sorted({row.attention for row in rows}, key=KINDS.index)
    columns = [_tables([row for row in rows if row.attention == kind]) for kind in kinds]
    most = max(map(len, columns))
    figure, panels = pyplot().subplots(
        most, len(kinds), figsize=(2.8 * len(kinds) + 1.5, 1.5 * most + 0.9), squeeze=False,
        sharey=True, sharex="col", layout="constrained",
    )  # fmt: skip
    for line, tables in zip(panels.T, columns, strict=True):
        for cell in line[len(tables) :]:
            cell.axis("off")
        for cell, (label, own) in zip(line, tables.items(), strict=False):
            _curve(cell, label, own)
    lines = [line for cell in panels.flat for line in cell.get_lines()]
    handles = {label: line for line in lines if (label := str(line.get_label())).startswith("head")}
    where = {"loc": "outside right center", "fontsize": 8, "frameon": False}
    figure.legend(handles.values(), handles, **where)
    axis = "distance i - j of query and key, in tokens"
    if any(line.get_linestyle() == ":" for line in lines):
        axis += "; dotted: the largest of training"
    figure.suptitle(f"{system}: positional logits over the distance", fontsize=11)
    figure.supxlabel(axis, fontsize=9)
    figure.supylabel("added to the logit", fontsize=9)
    return figure


def _curve(panel: Any, label: str, heads: Sequence[PatternRow]) -> None:
    first = heads[0]
    distances = range(first.first_distance, first.first_distance + len(first.by_distance))
    many = pyplot().get_cmap("viridis")(np.linspace(0, 0.95, len(heads)))
    for row, color in zip(heads, COLORS if len(heads) <= len(COLORS) else many, strict=False):
        panel.plot(distances, row.by_distance, color=color, linewidth=1.1, label=f"head {row.head}")
    panel.axhline(0, color="0.6", linewidth=0.7)
    panel.axvline(0, color="0.6", linewidth=0.7)
    queries, keys = first.trained or (first.tokens, first.tokens)
    for furthest in (queries - 1, 1 - keys):
        if furthest in distances[1:-1]:
            panel.axvline(furthest, color="0.3", linewidth=0.8, linestyle=":")
    panel.set_title(f"{TITLES[first.attention]}, {label}", fontsize=8, pad=3)
    panel.tick_params(labelsize=7)
    panel.margins(x=0.01)
