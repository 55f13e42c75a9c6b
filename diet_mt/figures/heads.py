"""Locality of heads, from positional logits and over real sentences; not a figure of the paper.

In cross-attention, the distance is between a target and a source position: the query at target
position i predicts word i of the translation, so a word-by-word translation has distance 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Optional

import torch
from torch import Tensor

from ..evaluation.json_rows import Row
from ..positions import DECODER, KINDS
from ..report.blocks import Block, Note, Table
from . import FigureConfig
from .capture import AttentionRecord, System, record, sentences
from .patterns import Pattern, patterns

PATTERNS = ("local", "shifted", "global", "between")
# Minimum share of the weight of a head near a distance, for local and shifted.
PATTERN = 0.5
# Maximum ratio of the weight near the query to that of uniform attention, for global.
FLAT = 1.5


@dataclass(frozen=True)
class Locality:
    """Distribution of the weight of one head over distances i - j of query and key, in tokens.

    ``peak`` is the distance with the largest mean weight, among distances that at least half of the
    queries have; if there are none, among the most frequent ones.
    """

    peak: int
    near: float  # share of the weight within K of distance 0
    near_peak: float  # share of the weight within K of the peak
    flat: float  # share of uniform attention within K of distance 0

    @property
    def pattern(self) -> str:
        """``local``: at least half of the weight is near the position of the query; ``shifted``:
        near another distance; ``global``: the weight near the query is at most ``FLAT`` times that
        of uniform attention; ``between``: none of these.
        """
        if self.near >= PATTERN:
            return "local"
        if self.near_peak >= PATTERN:
            return "shifted"
        return "global" if self.near <= FLAT * self.flat else "between"


def locality(weights: Tensor, open_keys: Tensor, near: int) -> Locality:
    """Locality of the attention ``weights`` (B, T, S) of one head. ``open_keys``: (B, T, S), True
    at keys that a query may attend to, none if it is padding; ``near``: K, in tokens.
    """
    queries, keys = weights.shape[-2:]
    away = torch.arange(queries)[:, None] - torch.arange(keys)  # (T, S)
    places = (away + keys - 1).expand(weights.shape)[open_keys]
    counts = torch.bincount(places, minlength=queries + keys - 1)
    sums = torch.zeros(queries + keys - 1, dtype=weights.dtype)
    sums.index_add_(0, places, weights[open_keys])
    real = open_keys.any(-1)  # (B, T)
    enough = min(int(real.sum()), 2 * int(counts.max()))  # no distance has half if targets are long
    means = torch.where(counts * 2 >= enough, sums / counts.clamp(min=1), -1.0)
    peak = int(means.argmax()) - (keys - 1)
    at_own, at_peak = away.abs() <= near, (away - peak).abs() <= near
    equal = open_keys / open_keys.sum(-1, keepdim=True).clamp(min=1)

    def share(of: Tensor, where: Tensor) -> float:
        return float((of * (open_keys & where)).sum(-1)[real].mean())

    return Locality(peak, share(weights, at_own), share(weights, at_peak), share(equal, at_own))


@dataclass(frozen=True)
class HeadRow(Row):
    """:class:`Locality` of one head, from positional logits and over sentences.

    ``positions_...``: of the softmax of positional logits, if any, over ``tokens`` positions.
    ``positions_layers``: layers (from 1) with the same positional logits, which count once.
    ``attention_...``: of the weights over ``sentences`` sentences.
    """

    system: str
    arch: str
    attention: str
    layer: int  # from 1
    head: int  # from 1
    near_tokens: int  # K, the largest distance that counts as near
    tokens: int
    positions_layers: list[int]
    positions_pattern: Optional[str]
    positions_peak: Optional[int]
    positions_near: Optional[float]
    positions_near_peak: Optional[float]
    positions_flat: Optional[float]
    sentences: int
    attention_pattern: str
    attention_peak: int
    attention_near: float
    attention_near_peak: float
    attention_flat: float


def head_rows(systems: Sequence[System], config: FigureConfig, tokens: int) -> list[HeadRow]:
    """Rows for every head whose keys are tokens."""
    return [row for system in systems for row in _rows(system, config, tokens)]


def _rows(system: System, config: FigureConfig, tokens: int) -> Iterator[HeadRow]:
    every = patterns(system, config.subset, tokens, config.sentences)
    terms = {(p.kind, layer): p for p in every for layer in p.layers if not p.mixes_keys}
    given = sentences(system, config.subset, config.sentences)
    for call in record(system, given):
        if call.call.positions.mixes_keys:
            continue
        weights, open_keys = call.weights(), _open_keys(system, call, given)
        term = terms.get((call.kind, call.layer + 1))
        by_positions = _by_positions(term, config.near) if term else [None] * weights.size(1)
        for head, positional in enumerate(by_positions):
            yield HeadRow(
                **call.place(system, head),
                near_tokens=config.near,
                tokens=tokens,
                positions_layers=term.layers if term else [],
                **_fields("positions", positional),
                sentences=len(weights),
                **_fields("attention", locality(weights[:, head], open_keys, config.near)),
            )


def _fields(prefix: str, head: Locality | None) -> dict[str, Any]:
    names = ("pattern", "peak", "near", "near_peak", "flat")
    values = (getattr(head, name, None) for name in names)
    rounded = (round(value, 4) if isinstance(value, float) else value for value in values)
    return {f"{prefix}_{name}": value for name, value in zip(names, rounded, strict=True)}


def _by_positions(pattern: Pattern, near: int) -> list[Locality | None]:
    """Locality of the softmax of the positional logits of each head."""
    open_keys = torch.ones(1, *pattern.logits.shape[-2:], dtype=torch.bool)
    if pattern.kind == DECODER:
        open_keys = open_keys.tril()
    logits = pattern.logits.masked_fill(~open_keys, float("-inf"))
    return [locality(weights[None], open_keys, near) for weights in logits.softmax(-1)]


def _open_keys(system: System, call: AttentionRecord, given: dict[str, Tensor]) -> Tensor:
    """(B, T, S), True at keys that a query may attend to; none for padded queries."""
    pad = system.task.source_dictionary.pad()
    source = given["src_tokens"].ne(pad)
    target = given["prev_output_tokens"].ne(pad) if "prev_output_tokens" in given else source
    queries = source if call.kind == KINDS[0] else target
    keys = target if call.kind == DECODER else source
    open_keys = queries[:, :, None] & keys[:, None, :]
    return open_keys.tril() if call.kind == DECODER else open_keys


def head_blocks(rows: Sequence[HeadRow]) -> list[Block]:
    """A table with a line for each system and kind of attention, and its legend."""
    groups: dict[tuple[int, str], list[HeadRow]] = {}
    for row in rows:
        groups.setdefault((KINDS.index(row.attention), row.system), []).append(row)
    lines = []
    for kind, system in sorted(groups, key=lambda group: group[0]):
        own = groups[kind, system]
        once = [row for row in own if row.positions_layers[:1] == [row.layer]]
        cells = [*_cells("positions", once), *_cells("attention", own)]
        lines.append([KINDS[kind], system, str(len(own)), *cells])
    heads = ["attention", "system", "heads", "by positions", "peaks", "near", "over sentences"]
    numbers = [False, False, True, False, False, True, False, False, True]
    note = (
        f"near: share of a head's weight within {rows[0].near_tokens} tokens of its own position, "
        "median over heads; in brackets the share with equal weights, larger in short sentences. "
        "local: at least half of the weight is near; shifted: it is near another distance; global: "
        "no more is near than 1.5 times the share of equal weights; between: none of these. peaks: "
        "distances i - j with the largest mean weight, of those that half of the queries have, and "
        f"their number of heads. By positions: over {rows[0].tokens} tokens; layers that share a "
        "table count once."
    )
    return [Table([*heads, "peaks", "near"], lines, numbers), Note(note)]


def _cells(prefix: str, rows: Sequence[HeadRow]) -> list[str]:
    """Patterns, ``3 local, 1 global``; the three most frequent peaks, ``0 (9), 1 (4), 2 (3)``; and
    medians of ``near`` and ``flat``, ``0.50 (0.15)``.
    """
    near, flat = ([getattr(row, f"{prefix}_{what}") for row in rows] for what in ("near", "flat"))
    counts = Counter(getattr(row, f"{prefix}_pattern") for row in rows)
    peaks = Counter(getattr(row, f"{prefix}_peak") for row in rows).most_common(3)
    return [
        ", ".join(f"{counts[name]} {name}" for name in PATTERNS if counts[name]),
        ", ".join(f"{distance} ({count})" for distance, count in peaks),
        f"{median(near):.2f} ({median(flat):.2f})" if rows else "",
    ]
