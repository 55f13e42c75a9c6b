"""Positional logits of a file of rows as heat maps, over the distance, and with segments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch

from ..positions import KINDS
from ..report.style import pyplot
from .looks import AXES, COLORS, TITLES, Pictures, heat_maps
from .patterns import BORDER, PatternRow


def pattern_pictures(rows: Sequence[PatternRow]) -> Pictures:
    """``patterns.SYSTEM.ATTENTION``, heat maps for each kind of attention, and ``distance.SYSTEM``
    of what depends on the distance alone.
    """
    for system in dict.fromkeys(row.system for row in rows):
        own = [row for row in rows if row.system == system]
        for kind in dict.fromkeys(row.attention for row in own):
            heads = [row for row in own if row.attention == kind]
            title = f"{system}: positional logits of {TITLES[kind]}"
            if (sentences := max(row.sentences for row in heads)) > 1:
                title += f", mean over {sentences} sentences"
            yield f"patterns.{system}.{kind}", _maps(heads, title)
        if curved := [row for row in own if row.by_distance]:
            yield f"distance.{system}", _curves(system, curved)


def segment_pictures(rows: Sequence[PatternRow]) -> Pictures:
    """``segments.SYSTEM``."""
    for system in dict.fromkeys(row.system for row in rows):
        own = [row for row in rows if row.system == system]
        title = f"{system}: positions and segments, the second one from {BORDER} on"
        yield f"segments.{system}", _maps(own, title, border=BORDER)


def _tables(rows: Sequence[PatternRow]) -> dict[str, list[PatternRow]]:
    """The heads of each table, by the layers that have it."""
    found = {}
    for layers, own in groupby(rows, key=lambda row: row.layers):
        one = len(layers) == 1
        found[f"layer {layers[0]}" if one else f"layers {layers[0]}-{layers[-1]}"] = list(own)
    return found


def _maps(rows: Sequence[PatternRow], title: str, border: int | None = None) -> Any:
    maps = {label: [row.matrix for row in own] for label, own in _tables(rows).items()}
    x, y = AXES[rows[0].attention]
    return heat_maps(maps, title, ("mixed key" if rows[0].mixes_keys else x, y), border=border)


def _curves(system: str, rows: Sequence[PatternRow]) -> Any:
    """A panel for each layer and kind of attention, a line for each head; distances that training
    had not are beyond dotted lines.
    """
    plt = pyplot()
    kinds = [kind for kind in KINDS if any(row.attention == kind for row in rows)]
    columns = [_tables([row for row in rows if row.attention == kind]) for kind in kinds]
    most = max(map(len, columns))
    figure, panels = plt.subplots(
        most, len(kinds), figsize=(2.8 * len(kinds) + 1.5, 1.5 * most + 0.9), squeeze=False,
        sharey=True, sharex="col", layout="constrained",
    )  # fmt: skip
    figure.suptitle(f"{system}: positional logits over the distance", fontsize=11)
    for line, tables in zip(panels.T, columns, strict=True):
        for cell in line[len(tables) :]:
            cell.axis("off")
        for cell, (label, own) in zip(line, tables.items(), strict=False):
            _curve(cell, label, own)
    lines = [line for cell in panels.flat for line in cell.get_lines()]
    heads = {str(line.get_label()): line for line in lines}
    handles = {label: line for label, line in heads.items() if label.startswith("head")}
    figure.legend(
        list(handles.values()), list(handles), loc="outside right center", fontsize=8, frameon=False
    )
    said = "distance i - j of query and key, in tokens"
    if any(line.get_linestyle() == ":" for line in lines):
        said += "; dotted: the largest of training"
    figure.supxlabel(said, fontsize=9)
    figure.supylabel("added to the logit", fontsize=9)
    return figure


def _curve(panel: Any, label: str, heads: Sequence[PatternRow]) -> None:
    first = heads[0]
    distances = range(first.first_distance, first.first_distance + len(first.by_distance))
    for row, color in zip(heads, _colors(len(heads)), strict=True):
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


def _colors(count: int) -> Sequence[Any]:
    """As many as there are heads."""
    if count <= len(COLORS):
        return COLORS[:count]
    colors: Sequence[Any] = pyplot().get_cmap("viridis")(torch.linspace(0, 0.95, count).numpy())
    return colors
