"""How the figures look: colours, grids of heat maps, names of what is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from ..report.style import pyplot

Pictures = Iterator[tuple[str, Any]]  # each with the name of its file, without a suffix

# Of heads. Okabe & Ito 2008: told apart by all kinds of colour vision.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DIVERGING = "RdBu_r"  # of ColorBrewer's diverging maps, one that colour-blind readers can use
CLOSED = "0.9"  # grey of a key that the query may not look at
_SMALL = 8  # points, of what stands around a panel

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}
# What stands along the rows and columns of a matrix of logits.
AXES = {
    "encoder": ("position j of the key", "position i of the query"),
    "decoder": ("target position j", "target position i"),
    "cross": ("source position j", "target position i"),
}


def heat_maps(
    maps: Mapping[str, Sequence[Tensor]],
    title: str,
    axes: tuple[str, str],
    *,
    border: int | None = None,
) -> Any:
    """A row of panels for each entry of ``maps``, one per head, (T, S) each, NaN where closed.

    One colour scale for the whole picture, symmetric around 0; its ends are the 0.5 % largest
    values. ``border``: where the second segment begins.
    """
    plt = pyplot()
    rows, columns = len(maps), max(map(len, maps.values()))
    values = np.abs(
        np.concatenate([panel.numpy().ravel() for row in maps.values() for panel in row])
    )
    values = values[np.isfinite(values)]
    widest = max(float(np.quantile(values, 0.995)), 1e-12)
    size = max(1.0, min(1.9, 13 / columns))
    figure, panels = plt.subplots(
        rows,
        columns,
        figsize=(size * columns + 1.6, size * rows + 0.85),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    colors = plt.get_cmap(DIVERGING).with_extremes(bad=CLOSED)
    norm = plt.Normalize(-widest, widest)
    image = None
    for (label, row), line in zip(maps.items(), panels, strict=True):
        for head, (panel, matrix) in enumerate(zip(line, row, strict=True), start=1):
            image = panel.imshow(matrix.numpy(), cmap=colors, norm=norm, interpolation="nearest")
            panel.set_title(f"{label}, head {head}", fontsize=_SMALL, pad=3)
            panel.tick_params(labelsize=_SMALL - 1, length=2)
            if border is not None:
                for mark in (panel.axhline, panel.axvline):
                    mark(border - 0.5, color="0.25", linewidth=0.8, linestyle="--")
    figure.suptitle(title, fontsize=11)
    figure.supxlabel(axes[0], fontsize=9)
    figure.supylabel(axes[1], fontsize=9)
    beyond = "both" if values.max() > widest else "neither"
    scale = figure.colorbar(image, ax=panels, shrink=0.8, aspect=30, pad=0.01, extend=beyond)
    scale.set_label("added to the logit", fontsize=9)
    scale.ax.tick_params(labelsize=_SMALL)
    return figure
