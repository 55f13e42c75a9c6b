"""Rank of attention logits and of positional logits (Chen et al. 2021, figures 2 and 8)."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

import torch
from torch import Tensor

from ..evaluation.json_rows import Row
from ..layers.multihead import AttentionCall
from ..positions import KINDS
from ..report.style import line_styles, pyplot, tick_text
from .asked import Asked
from .looks import TITLES, Pictures
from .measures import RANK_THRESHOLD, Ranks, ranks
from .observed import Seen, System, added_rows, fitting, joined, observe

LOGITS, POSITIONAL = WHATS = ("logits", "positional logits")
_DIGITS = 3  # significant, of a singular value in a row


@dataclass(frozen=True)
class RankRow(Row):
    """The matrices of one head over a batch, or its one positional matrix.

    ``rank``: the median over the batch, ``lowest`` and ``highest``: of the batch; ``effective``:
    the mean of the effective ranks; ``singular``: the mean of each singular value. ``trained``:
    positions of queries and of keys that training had, its longest sentences; empty: not known.
    ``head_size``: columns in which queries and keys meet.
    """

    system: str
    arch: str
    attention: str
    layer: int  # from 1 on
    head: int  # from 1 on
    what: str  # of WHATS
    tokens: int  # n of the n x n matrices
    trained: list[int]
    matrices: int
    head_size: int
    threshold: float  # a singular value counts above this share of the largest
    rank: int
    lowest: int
    highest: int
    effective: float
    singular: list[Union[float, int]]


def rank_rows(systems: Sequence[System], asked: Asked) -> list[RankRow]:
    """Rows for every head, over rows of joined sentences of a split."""
    tokens = fitting(systems[0], asked.rank_tokens, "rank")
    rows = [
        row
        for system in systems
        for call in observe(system, joined(system, asked.subset, tokens, asked.sentences))
        for what, matrices in _matrices(system, call, tokens)
        for row in _rows(system, call, what, ranks(matrices), tokens)
    ]
    if tokens <= (size := max(row.head_size for row in rows)):
        print(
            f"rank: of {tokens} tokens the rank is at most that, and with heads of size {size} it "
            "may be that with any encoding; the singular values say more",
            file=sys.stderr,
        )
    return rows


def _matrices(system: System, call: Seen, tokens: int) -> Iterator[tuple[str, Tensor]]:
    """The logits (B, H, T, S) of a call, and its positional logits (B|1, H, T, S), if any."""
    yield LOGITS, call.logits()
    term = call.positional()
    if term.any():
        same = (term == term[:1]).all()
        yield POSITIONAL, term[:1] if same else term
    elif call.layer == 0 and call.source is None:
        stack = system.stacks[call.kind]
        if stack.embed_positions is not None:
            # P W_Q W_K^T P^T with the first layer's projections and their biases, which the
            # paper's formula is without (appendix C): in those above, positions and words have
            # been mixed.
            with torch.no_grad():
                rows = added_rows(stack, tokens).transpose(0, 1)  # (T, 1, E)
                yield POSITIONAL, call.module.logits(rows, None, AttentionCall())


def _rows(system: System, call: Seen, what: str, found: Ranks, tokens: int) -> Iterator[RankRow]:
    size = call.columns
    for head in range(found.rank.size(1)):
        each = found.rank[:, head]
        yield RankRow(
            **call.place(system, head),
            what=what,
            tokens=tokens,
            trained=list(system.trained.get(call.kind, ())),
            matrices=len(each),
            head_size=size,
            threshold=RANK_THRESHOLD,
            rank=int(each.median()),
            lowest=int(each.min()),
            highest=int(each.max()),
            effective=round(float(found.effective[:, head].mean()), 2),
            singular=[
                float(f"{value:.{_DIGITS}g}") for value in found.singular[:, head].mean(0).tolist()
            ],
        )


def rank_pictures(rows: Sequence[RankRow]) -> Pictures:
    """``rank``: the rank of each head; ``spectrum``: the singular values."""
    yield "rank", _ranks(rows)
    yield "spectrum", _spectra(rows)


def _grid(rows: Sequence[RankRow], title: str) -> tuple[Any, Iterator[tuple[Any, list[RankRow]]]]:
    """A figure with a panel for each kind of attention and of logits, and the rows of each."""
    plt = pyplot()
    kinds = [kind for kind in KINDS if any(row.attention == kind for row in rows)]
    whats = [what for what in WHATS if any(row.what == what for row in rows)]
    figure, panels = plt.subplots(
        len(whats), len(kinds), figsize=(2.9 * len(kinds) + 1.5, 2.2 * len(whats) + 0.9),
        squeeze=False, sharey=True, sharex=True, layout="constrained",
    )  # fmt: skip
    figure.suptitle(title, fontsize=11)

    def each() -> Iterator[tuple[Any, list[RankRow]]]:
        for what, line in zip(whats, panels, strict=True):
            for kind, panel in zip(kinds, line, strict=True):
                panel.set_title(f"{what}, {TITLES[kind]}", fontsize=8)
                panel.tick_params(labelsize=8)
                panel.grid(alpha=0.3)
                yield panel, [r for r in rows if (r.attention, r.what) == (kind, what)]

    return figure, each()


def _notes(rows: Sequence[RankRow]) -> list[str]:
    """Lines below the pictures."""
    said = ["positional logits of an input: of layer 1, with the biases of its projections"]
    if any(row.trained for row in rows):
        source, target = (
            max(row.trained[0] for row in rows if row.trained and row.attention == kind)
            for kind in KINDS[:2]
        )
        said.insert(0, f"longest training sentences: {source} source, {target} target tokens")
    return said


def _finish(figure: Any, rows: Sequence[RankRow], x: str, y: str, line: str = "-") -> Any:
    """Labels, and a legend of all systems, shown with ``line``."""
    usual = {"markersize": 5, "linewidth": 1.2, "linestyle": line}
    handles = [
        pyplot().Line2D([], [], label=name, **usual, **style)
        for name, style in line_styles(row.system for row in rows).items()
    ]
    handles.append(pyplot().Line2D([], [], color="0.3", linestyle="--", label="head size"))
    figure.legend(handles=handles, loc="outside right center", fontsize=8, frameon=False)
    width = int(14 * figure.get_size_inches()[0])  # characters of this size
    below = [line for note in (x, *_notes(rows)) for line in textwrap.wrap(note, width)]
    figure.supxlabel("\n".join(below), fontsize=9)
    figure.supylabel(y, fontsize=9)
    return figure


def _ranks(rows: Sequence[RankRow]) -> Any:
    styles, tokens = line_styles(row.system for row in rows), rows[0].tokens
    most = max(row.matrices for row in rows)
    title = f"Rank over {tokens} tokens, the median of {most} rows of text"
    figure, panels = _grid(rows, title)
    heads = max(row.head for row in rows)
    layers = max(row.layer for row in rows)
    for panel, shown in panels:
        for number, (name, style) in enumerate(styles.items()):
            own = [row for row in shown if row.system == name]
            aside = 0.7 * ((number + 0.5) / len(styles) - 0.5)  # equal ranks side by side
            places = [(row.layer - 1) * heads + row.head + aside for row in own]
            panel.plot(places, [row.rank for row in own], linestyle="", markersize=4, **style)
        for size in {row.head_size for row in rows}:
            panel.axhline(size, color="0.3", linestyle="--", linewidth=1)
        for layer in range(1, layers):
            panel.axvline(layer * heads + 0.5, color="0.8", linewidth=0.8)
        panel.set_xticks(
            [(layer + 0.5) * heads + 0.5 for layer in range(layers)],
            [f"layer {layer + 1}" for layer in range(layers)] if layers <= 6
            else [str(layer + 1) for layer in range(layers)],
        )  # fmt: skip
        panel.grid(False, axis="x")
        panel.set_ylim(0, tokens * 1.05)
    heads_are = f"layers, in each heads 1 to {heads} from left to right"
    counted = f"rank (σ > {RANK_THRESHOLD:.0e} of the largest)".replace("e-0", "e-")
    return _finish(figure, rows, heads_are, counted, "")


def _spectra(rows: Sequence[RankRow]) -> Any:
    title = f"Singular values over {rows[0].tokens} tokens, the median over heads and layers"
    figure, panels = _grid(rows, title)
    for panel, shown in panels:
        for name, style in line_styles(row.system for row in rows).items():
            own = [row for row in shown if row.system == name]
            if own:
                values = torch.tensor([row.singular for row in own], dtype=torch.float64)
                middle = (values / values[:, :1]).median(0).values.numpy()
                usual = {"linewidth": 1.2, "markersize": 3, "markevery": 8}
                panel.plot(range(1, len(middle) + 1), middle, **usual, **style)
        for size in {row.head_size for row in rows}:
            panel.axvline(size, color="0.3", linestyle="--", linewidth=1)
        panel.set_yscale("log")
        panel.set_ylim(1e-6, 1.5)
        panel.yaxis.set_major_formatter(tick_text)
    return _finish(figure, rows, "number of the singular value", "share of the largest")
