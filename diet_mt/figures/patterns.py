"""Positional logits of a model, by head (Chen et al. 2021, figures 4, 6 and 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Union

import torch
from torch import Tensor

from ..evaluation.json_rows import Row
from ..positions import DECODER
from .asked import Asked
from .measures import by_distance
from .observed import System, fitting, joined, observe

# Figure 6: sentences of 32 tokens, the second segment from position 16 on.
SEGMENT_TOKENS, BORDER = 32, 16
_DIGITS = 4  # significant, of a logit in a row


@dataclass(frozen=True)
class PatternRow(Row):
    """The positional logits of one head.

    ``values``: row i for query i, None where causal attention may not look; empty where the term
    depends on the distance alone. Then ``by_distance`` has its value for each distance i - j from
    ``first_distance`` on. A term that depends on words is the mean over ``sentences``; otherwise
    that is 1. ``trained``: tokens of queries and of keys in the longest sentences of training;
    empty: not known.
    """

    system: str
    arch: str
    attention: str
    layers: list[int]  # from 1 on; several where they share one table
    head: int  # from 1 on
    tokens: int
    sentences: int
    segments: bool  # with what segments add, the second one from BORDER on
    first_distance: int
    by_distance: list[float]
    values: list[list[Union[float, None]]]
    trained: list[int] = field(default_factory=list)
    mixes_keys: bool = False  # keys are mixtures of tokens

    @property
    def matrix(self) -> Tensor:
        """(T, S), NaN where causal attention may not look."""
        if self.values:
            closed = float("nan")
            return torch.tensor([[closed if v is None else v for v in row] for row in self.values])
        places = torch.arange(self.tokens)
        away = places[:, None] - places - self.first_distance
        line = torch.tensor(self.by_distance)
        return line[away.clamp(min=0)].masked_fill(away < 0, torch.nan)


@dataclass(frozen=True)
class Pattern:
    """The positional logits of layers that have the same: ``logits`` (H, T, S)."""

    kind: str
    layers: list[int]
    logits: Tensor
    sentences: int
    mixes_keys: bool = False

    @property
    def shown(self) -> Tensor:
        """The logits, NaN where causal attention may not look."""
        if self.kind != DECODER:
            return self.logits
        behind = torch.ones_like(self.logits, dtype=torch.bool).triu(1)
        return self.logits.masked_fill(behind, torch.nan)

    @property
    def curves(self) -> tuple[range, Tensor] | None:
        """Distances i - j that attention meets, and the value of each, (H, distances); None where
        the logits depend on more than the distance.
        """
        found = None if self.mixes_keys else by_distance(self.logits)
        if found is None:
            return None
        queries, keys = self.logits.shape[-2:]
        first = 0 if self.kind == DECODER else 1 - keys
        return range(first, queries), found[:, first + keys - 1 :]


def patterns(
    system: System, subset: str, tokens: int, count: int, *, segments: bool = False
) -> list[Pattern]:
    """The positional logits of every attention that has some, over ``tokens`` positions.

    ``count``: sentences that those are averaged over which depend on words. ``segments``: with what
    segments add, two segments with the border in the middle.
    """
    given = joined(system, subset, tokens, count)
    if segments:
        border = torch.arange(tokens) >= BORDER
        given["segment_ids"] = border.long().expand_as(given["src_tokens"])
    found: list[Pattern] = []
    for call in observe(system, given):
        logits = call.positional(segments=segments)  # (B, H, T, S)
        if not logits.any() or (segments and call.call.segments is None):
            continue
        same = bool((logits == logits[:1]).all())
        mean = logits[0] if same else logits.mean(0)
        sentences = 1 if same else len(logits)
        one = Pattern(call.kind, [call.layer + 1], mean, sentences, call.mixes_keys)
        last = found[-1] if found and found[-1].kind == one.kind else None
        if last is not None and torch.equal(last.logits, one.logits):
            last.layers.extend(one.layers)
        else:
            found.append(one)
    return found


def pattern_rows(systems: Sequence[System], asked: Asked) -> list[PatternRow]:
    """Rows for every head with positional logits."""
    tokens = fitting(systems[0], asked.positions, "patterns")
    return [
        row
        for system in systems
        for row in _rows(system, patterns(system, asked.subset, tokens, asked.sentences))
    ]


def segment_rows(systems: Sequence[System], asked: Asked) -> list[PatternRow]:
    """Rows for every head of an encoder alone whose logits have segments."""
    tokens = fitting(systems[0], SEGMENT_TOKENS, "segments")
    return [
        row
        for system in systems
        if not system.translates
        for row in _rows(
            system,
            patterns(system, asked.subset, tokens, asked.sentences, segments=True),
            segments=True,
        )
    ]


def _rows(
    system: System, found: Iterable[Pattern], *, segments: bool = False
) -> Iterator[PatternRow]:
    for pattern in found:
        curves = pattern.curves
        distances, values = (range(0), None) if curves is None else curves
        for head, matrix in enumerate(pattern.shown):
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
