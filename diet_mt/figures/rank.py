"""Rank of attention logits and of positional logits (Chen et al. 2021, figures 2 and 8)."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

import torch
from torch import Tensor

from ..evaluation.json_rows import Row
from ..layers.multihead import AttentionCall
from ..positions import KINDS
from ..report.style import line_styles, pyplot, tick_text
from . import FigureConfig
from .capture import TITLES, AttentionRecord, System, added_rows, joined, record

LOGITS, POSITIONAL = WHATS = ("logits", "positional logits")
_DIGITS = 3  # significant digits of a singular value in a row
# Singular values count above this share of the largest. Rounding errors of float64 are near 1e-15,
# so the result is the rank of the formulas; singular values and effective rank show how much of it
# matters.
RANK_THRESHOLD = 1e-9


class Ranks(NamedTuple):
    """Singular values and ranks of matrices (..., T, S).

    The effective rank is the exponential of the entropy of the singular values, as shares of their
    sum (Roy & Vetterli 2007).
    """

    singular: Tensor  # (..., min(T, S)), descending
    rank: Tensor  # (...), number of singular values above RANK_THRESHOLD times the largest
    effective: Tensor  # (...)


def ranks(matrices: Tensor) -> Ranks:
    """Ranks of ``matrices`` (..., T, S) in float64."""
    singular = torch.linalg.svdvals(matrices)
    largest = singular[..., :1]
    rank = (singular > RANK_THRESHOLD * largest).sum(-1)
    shares = singular / singular.sum(-1, keepdim=True).clamp(min=torch.finfo(singular.dtype).tiny)
    effective = torch.special.entr(shares).sum(-1).exp() * (rank > 0)
    return Ranks(singular, rank, effective)


@dataclass(frozen=True)
class RankRow(Row):
    """Ranks of the logits of one head, over a batch of ``matrices``.

    There is one matrix if all are equal, as of positional logits that do not depend on words.
    ``trained``: tokens of queries and of keys in the longest training sentences; empty: unknown.
    """

    system: str
    arch: str
    attention: str
    layer: int  # from 1
    head: int  # from 1
    what: str  # of WHATS
    tokens: int  # of each sequence
    trained: list[int]
    matrices: int
    head_size: int  # width of queries and keys in their product
    threshold: float  # singular values count above this share of the largest
    rank: int  # median over the batch
    lowest: int  # rank, over the batch
    highest: int  # rank, over the batch
    effective: float  # mean effective rank
    singular: list[Union[float, int]]  # mean of each singular value


def rank_rows(systems: Sequence[System], config: FigureConfig, tokens: int) -> list[RankRow]:
    """Rows for each head, over concatenated sentences of a split."""
    rows = [
        row
        for system in systems
        for call in record(system, joined(system, config.subset, tokens, config.sentences))
        for what, matrices in _matrices(system, call, tokens)
        for row in _rows(system, call, what, ranks(matrices), tokens)
    ]
    if tokens <= (size := max(row.head_size for row in rows)):
        print(
            f"rank: over {tokens} tokens with heads of size {size} every rank may be {tokens}; "
            "compare the singular values",
            file=sys.stderr,
        )
    return rows


def _matrices(system: System, call: AttentionRecord, tokens: int) -> Iterator[tuple[str, Tensor]]:
    """The logits (B, H, T, S) of a call, and its positional logits (B|1, H, T, S), if any."""
    yield LOGITS, call.logits()
    term = call.positional()
    if term.any():
        same = (term == term[:1]).all()
        yield POSITIONAL, term[:1] if same else term
    elif call.layer == 0 and call.source is None:
        stack = system.stacks[call.kind]
        if stack.embed_positions is not None:
            # P W_Q W_K^T P^T with the projections of the first layer and, unlike the paper's
            # formula (appendix C), their biases. Inputs of higher layers mix words and positions.
            with torch.no_grad():
                rows = added_rows(stack, tokens).transpose(0, 1)  # (T, 1, E)
                yield POSITIONAL, call.module.logits(rows, None, AttentionCall())


def _rows(
    system: System, call: AttentionRecord, what: str, own: Ranks, tokens: int
) -> Iterator[RankRow]:
    for head, each in enumerate(own.rank.unbind(1)):
        singular = own.singular[:, head].mean(0).tolist()
        yield RankRow(
            **call.place(system, head),
            what=what,
            tokens=tokens,
            trained=list(system.trained.get(call.kind, ())),
            matrices=len(each),
            head_size=call.columns,
            threshold=RANK_THRESHOLD,
            rank=int(each.median()),
            lowest=int(each.min()),
            highest=int(each.max()),
            effective=round(float(own.effective[:, head].mean()), 2),
            singular=[float(f"{value:.{_DIGITS}g}") for value in singular],
        )


def rank_pictures(rows: Sequence[RankRow]) -> Iterator[tuple[str, Any]]:
    """The pictures ``rank``, of each head, and ``spectrum``, the singular values."""
    tokens, heads = rows[0].tokens, max(row.head for row in rows)
    threshold = f"{RANK_THRESHOLD:.0e}".replace("e-0", "e-")
    figure, panels = _panels(rows)
    for panel, shown in panels:
        _draw_ranks(panel, rows, shown)
    most = max(row.matrices for row in rows)
    figure.suptitle(f"Rank over {tokens} tokens, the median of {most} rows of text", fontsize=11)
    figure.supylabel(f"rank (σ > {threshold} of the largest)", fontsize=9)
    _finish(figure, rows, f"layers, in each heads 1 to {heads} from left to right", "")
    yield "rank", figure
    figure, panels = _panels(rows)
    for panel, shown in panels:
        _draw_spectra(panel, rows, shown)
    title = f"Singular values over {tokens} tokens, the median over heads and layers"
    figure.suptitle(title, fontsize=11)
    figure.supylabel("share of the largest", fontsize=9)
    _finish(figure, rows, "number of the singular value", "-")
    yield "spectrum", figure


def _panels(rows: Sequence[RankRow]) -> tuple[Any, list[tuple[Any, list[RankRow]]]]:
    """A figure, and its panels for each kind of attention and of logits with their rows."""
    kinds = sorted({row.attention for row in rows}, key=KINDS.index)
    whats = sorted({row.what for row in rows}, key=WHATS.index)
    figure, grid = pyplot().subplots(
        len(whats), len(kinds), figsize=(2.9 * len(kinds) + 1.5, 2.2 * len(whats) + 0.9),
        squeeze=False, sharey=True, sharex=True, layout="constrained",
    )  # fmt: skip
    panels = []
    for what, line in zip(whats, grid, strict=True):
        for kind, panel in zip(kinds, line, strict=True):
            panel.set_title(f"{what}, {TITLES[kind]}", fontsize=8)
            panel.tick_params(labelsize=8)
            panel.grid(alpha=0.3)
            panels.append((panel, [r for r in rows if (r.attention, r.what) == (kind, what)]))
    return figure, panels


def _finish(figure: Any, rows: Sequence[RankRow], x: str, line: str) -> None:
    """Adds the label of the x axis with notes, and a legend with lines of style ``line``."""
    notes = [x]
    if any(row.trained for row in rows):
        source, target = (
            max(row.trained[0] for row in rows if row.trained and row.attention == kind)
            for kind in KINDS[:2]
        )
        notes.append(f"longest training sentences: {source} source, {target} target tokens")
    notes.append("positional logits of an input: of layer 1, with the biases of its projections")
    width = int(14 * figure.get_size_inches()[0])  # characters of this size
    figure.supxlabel("\n".join(textwrap.fill(note, width) for note in notes), fontsize=9)
    usual = {"markersize": 5, "linewidth": 1.2, "linestyle": line}
    handles = [
        pyplot().Line2D([], [], label=name, **usual, **style)
        for name, style in line_styles(row.system for row in rows).items()
    ]
    handles.append(pyplot().Line2D([], [], color="0.3", linestyle="--", label="head size"))
    figure.legend(handles=handles, loc="outside right center", fontsize=8, frameon=False)


def _draw_ranks(panel: Any, rows: Sequence[RankRow], shown: Sequence[RankRow]) -> None:
    styles = line_styles(row.system for row in rows)
    heads, layers = max(row.head for row in rows), max(row.layer for row in rows)
    for number, (name, style) in enumerate(styles.items()):
        own = [row for row in shown if row.system == name]
        aside = 0.7 * ((number + 0.5) / len(styles) - 0.5)  # equal ranks side by side
        places = [(row.layer - 1) * heads + row.head + aside for row in own]
        panel.plot(places, [row.rank for row in own], linestyle="", markersize=4, **style)
    for size in {row.head_size for row in rows}:
        panel.axhline(size, color="0.3", linestyle="--", linewidth=1)
    for layer in range(1, layers):
        panel.axvline(layer * heads + 0.5, color="0.8", linewidth=0.8)
    prefix = "layer " if layers <= 6 else ""
    panel.set_xticks(
        [(layer + 0.5) * heads + 0.5 for layer in range(layers)],
        [f"{prefix}{layer + 1}" for layer in range(layers)],
    )
    panel.grid(False, axis="x")
    panel.set_ylim(0, rows[0].tokens * 1.05)


def _draw_spectra(panel: Any, rows: Sequence[RankRow], shown: Sequence[RankRow]) -> None:
    usual = {"linewidth": 1.2, "markersize": 3, "markevery": 8}
    for name, style in line_styles(row.system for row in rows).items():
        singular = [row.singular for row in shown if row.system == name]
        if singular:
            values = torch.tensor(singular, dtype=torch.float64)
            middle = (values / values[:, :1].clamp(min=1e-300)).median(0).values.numpy()
            panel.plot(range(1, len(middle) + 1), middle, **usual, **style)
    for size in {row.head_size for row in rows}:
        panel.axvline(size, color="0.3", linestyle="--", linewidth=1)
    panel.set_yscale("log")
    panel.set_ylim(1e-6, 1.5)
    panel.yaxis.set_major_formatter(tick_text)
