"""Where each head looks: by its positions alone, and over real sentences, words included.

No figure of the paper; it shows patterns of encoders alone. In cross-attention the distance is that
of a target and a source position: the query at target position i predicts word i of the
translation, so a translation word by word would look at distance 0.
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
from ..report.blocks import Block, Grid, Note
from .asked import Asked
from .measures import Look, look
from .observed import Seen, System, fitting, observe, sentences
from .patterns import Pattern, patterns

PATTERNS = ("local", "shifted", "global", "between")


@dataclass(frozen=True)
class HeadRow(Row):
    """Where one head looks, in shares of the weight; see :class:`measures.Look`.

    ``positions_...``: softmax of the positional logits alone, over ``tokens`` positions; None where
    there are none. ``positions_layers``: those that have the same logits, from 1 on; they count
    once. ``attention_...``: the weights over ``sentences`` sentences.
    """

    system: str
    arch: str
    attention: str
    layer: int  # from 1 on
    head: int  # from 1 on
    near_tokens: int  # K: near is up to so many tokens away
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

    @property
    def first_of_table(self) -> bool:
        """Whether this is the row in which the positional logits of its head count."""
        return self.positions_layers[:1] == [self.layer]


def head_rows(systems: Sequence[System], asked: Asked) -> list[HeadRow]:
    """Rows for every head whose keys are tokens."""
    tokens = fitting(systems[0], asked.positions, "heads")
    return [row for system in systems for row in _rows(system, asked, tokens)]


def _rows(system: System, asked: Asked, tokens: int) -> Iterator[HeadRow]:
    near = asked.near
    found = patterns(system, asked.subset, tokens, asked.sentences)
    terms = {(p.kind, layer): p for p in found for layer in p.layers if not p.mixes_keys}
    given, _ = sentences(system, asked.subset, asked.sentences)
    for call in observe(system, given):
        if call.mixes_keys:
            continue
        weights, allowed = call.weights(), _open_keys(system, call, given)
        term = terms.get((call.kind, call.layer + 1))
        own = _alone(term, near)
        for head in range(weights.size(1)):
            positional = own[head] if own else None
            real = look(weights[:, head], allowed, near)
            yield HeadRow(
                **call.place(system, head),
                near_tokens=near,
                tokens=tokens,
                positions_layers=term.layers if term else [],
                **_fields("positions", positional),
                sentences=len(weights),
                **_fields("attention", real),
            )


def _fields(of: str, found: Look | None) -> dict[str, Any]:
    """The fields of a row that begin with ``of``."""
    names = ("pattern", "peak", "near", "near_peak", "flat")
    values = (getattr(found, name, None) for name in names)
    rounded = (round(value, 4) if isinstance(value, float) else value for value in values)
    return {f"{of}_{name}": value for name, value in zip(names, rounded, strict=True)}


def _alone(pattern: Pattern | None, near: int) -> list[Look]:
    """Of each head's softmax over positional logits alone."""
    if pattern is None:
        return []
    allowed = torch.ones(1, *pattern.logits.shape[-2:], dtype=torch.bool)
    if pattern.kind == DECODER:
        allowed = allowed.tril()
    logits = pattern.logits.masked_fill(~allowed, float("-inf"))
    return [look(weights[None], allowed, near) for weights in logits.softmax(-1)]


def _open_keys(system: System, call: Seen, given: dict[str, Tensor]) -> Tensor:
    """(B, T, S), the keys that real queries may look at."""
    pad = system.task.source_dictionary.pad()
    source = given["src_tokens"].ne(pad)
    target = given["prev_output_tokens"].ne(pad) if "prev_output_tokens" in given else source
    queries = source if call.kind == KINDS[0] else target
    keys = target if call.kind == DECODER else source
    allowed = queries[:, :, None] & keys[:, None, :]
    return allowed.tril() if call.kind == DECODER else allowed


def head_blocks(rows: Sequence[HeadRow]) -> list[Block]:
    """The table of all systems, and what its words mean."""
    return [_table(rows), Note(_explained(rows[0]))]


def _table(rows: Sequence[HeadRow]) -> Grid:
    """A line for each system and kind of attention."""
    groups = dict.fromkeys((row.attention, row.system) for row in rows)
    lines = []
    for kind, system in sorted(groups, key=lambda group: KINDS.index(group[0])):
        own = [row for row in rows if (row.attention, row.system) == (kind, system)]
        termed = [row for row in own if row.first_of_table]
        cells = [*_cells("positions", termed), *_cells("attention", own)]
        lines.append([kind, system, str(len(own)), *cells])
    heads = ["attention", "system", "heads", "by positions", "peaks", "near", "over sentences"]
    numbers = [False, False, True, False, False, True, False, False, True]
    return Grid([*heads, "peaks", "near"], lines, numbers)


def _explained(row: HeadRow) -> str:
    """What the words of the table mean."""
    return (
        f"near: share of a head's weight within {row.near_tokens} tokens of its own position, the "
        "median over heads; in brackets that of equal weights, larger in short sentences. local: "
        "at least half of it is there; shifted: around another distance; global: no more is near "
        "than 1.5 times what equal weights have; between: none of these. peaks: distances i - j, "
        "of those that half of the queries have, with the largest mean weight, and of how many "
        f"heads. By positions: over {row.tokens} tokens; layers that share a table count once."
    )


def _cells(of: str, rows: Sequence[HeadRow]) -> list[str]:
    """``3 local, 1 global``; the three most frequent peaks, ``0 (9), 1 (4), 2 (3)``; the median
    share that is near, and of equal weights, ``0.50 (0.15)``. ``of``: what the fields begin with.
    """
    near, flat = ([getattr(row, f"{of}_{what}") for row in rows] for what in ("near", "flat"))
    looks = Counter(getattr(row, f"{of}_pattern") for row in rows)
    peaks = Counter(getattr(row, f"{of}_peak") for row in rows).most_common(3)
    return [
        ", ".join(f"{looks[name]} {name}" for name in PATTERNS if looks[name]),
        ", ".join(f"{distance} ({count})" for distance, count in peaks),
        f"{median(near):.2f} ({median(flat):.2f})" if rows else "",
    ]
