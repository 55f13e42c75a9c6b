"""From a value per clipped offset, j - i of query and key, to one per query and key, and back."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Callable, ClassVar, List, Optional, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from .base import AttentionPositions
from .layer import LayerPositions, Row, at_row
from .options import option
from .spans import Span, as_tensor, extremes, tokens_in

Layer = TypeVar("Layer", bound="ClippedLayer")


def clip_option(default: int) -> Any:
    """The option of the encodings that clip."""
    return option("--position-clip", default, "largest distance that is told apart")


@dataclass(frozen=True)
class ClippedLayer(LayerPositions):
    """``of_keys`` (H|1, 2c+1, D): what each query meets, row j - i + c for clipped j - i.

    Queries stand from ``query_start`` to ``query_start + query_len - 1``, or, where ``rows`` is
    given, anywhere: it has for each of them the row of each key, (T, S).
    """

    of_keys: Optional[Tensor] = None
    query_start: int = 0
    query_len: int = 1
    rows: Optional[Tensor] = None

    def step(self: Layer, row: Row, keys: int) -> Layer:
        if self.rows is not None:
            return replace(self, query_len=1, rows=at_row(self.rows, row, 0)[:, :keys])
        assert isinstance(row, int)
        return replace(self, query_start=self.query_start + row, query_len=1)

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Tensor:
        assert self.of_keys is not None
        products = (q * scale) @ self.of_keys.to(q.dtype).transpose(-1, -2)  # (B, H, T, 2c+1)
        if self.rows is not None:
            return pick(products, self.rows)
        return self.by_position(spread, products, keys)

    def by_position(self, move: Callable[..., Tensor], rows: Tensor, size: int) -> Tensor:
        """:func:`spread` or :func:`collect` of ``rows``, from where the queries stand."""
        if self.query_len > 1:
            return move(rows, size, self.query_start)
        # Rows at one position, such as a sentence's beams, are not one query after the other.
        return move(rows.unsqueeze(-2), size, self.query_start).squeeze(-2)


class ClippedPositions(AttentionPositions):
    """What depends on the distance alone, up to the clip c."""

    limited: ClassVar[bool] = False
    clip: int

    @abstractmethod
    def up_to(self, furthest: int, **where: Any) -> List[LayerPositions]:
        """For distances of at most ``furthest``, itself at most the clip; ``where``: the fields of
        ``ClippedLayer`` that say where the queries stand.
        """

    def parts(self, queries: Span, keys: Span) -> List[LayerPositions]:
        if isinstance(queries, range) and isinstance(keys, range):
            # No more vectors than there are distances: their products with queries cost most.
            furthest = max(*map(abs, extremes(queries, keys)), 1)
            where = {"query_start": queries.start, "query_len": tokens_in(queries)}
            return self.up_to(min(self.clip, furthest), **where)
        clip = min(self.clip, max(self.shape.max_queries, self.shape.max_keys))
        device = self.like.device
        offset = as_tensor(keys, device) - as_tensor(queries, device)[:, None]  # (T, S)
        rows = offset.clamp(-clip, clip) + clip
        return self.up_to(clip, query_len=tokens_in(queries), rows=rows)


def spread(by_offset: Tensor, keys: int, start: int = 0) -> Tensor:
    """(..., T, 2c+1), for each query one value per clipped offset -> (..., T, S) with
    ``out[i, j] = by_offset[i, clip(j - (start + i)) + c]``.

    Each row is first stretched to all offsets, from that of the first key and the last query up to
    that of the last key and the first, its ends repeated. The rows, laid end to end, are then read
    again one element shorter, which shifts each one column further left than the row above. All of
    it copies blocks; nothing is gathered element by element.
    """
    queries, clip = by_offset.size(-2), by_offset.size(-1) // 2
    lowest, highest = 1 - queries - start, keys - 1 - start  # offsets
    stretched = queries + keys - 1
    left = min(max(-lowest - clip, 0), stretched)  # of them beyond the clip
    right = max(highest - clip, 0)
    middle = by_offset[..., max(clip + lowest, 0) : max(min(clip + highest, 2 * clip) + 1, 0)]
    ends = by_offset[..., :1], by_offset[..., -1:]
    shape = by_offset.shape[:-1]
    rows = torch.cat([ends[0].expand(*shape, left), middle, ends[1].expand(*shape, right)], dim=-1)
    if queries == 1:
        return rows
    short = stretched - 1
    line = rows.flatten(-2).narrow(-1, queries - 1, queries * short)
    shifted: Tensor = line.unflatten(-1, (queries, short))
    return shifted[..., :keys]


def collect(weights: Tensor, clip: int, start: int = 0) -> Tensor:
    """The transpose of :func:`spread`: (..., T, S) -> (..., T, 2c+1), for each query the sum of its
    weights at each clipped offset.
    """
    queries, keys = weights.shape[-2:]
    rows = weights
    if queries > 1:
        line = F.pad(weights, (0, queries - 2)).flatten(-2)
        rows = F.pad(line, (queries - 1, 1)).unflatten(-1, (queries, queries + keys - 1))
    lowest, highest = 1 - queries - start, keys - 1 - start  # offsets
    # Those that do not reach the clip leave columns of zeros.
    rows = F.pad(rows, (max(clip + lowest, 0), max(clip - highest, 0)))
    left, right = max(-lowest - clip, 0), max(highest - clip, 0)
    if left:
        ends = rows[..., : left + 1].sum(-1, keepdim=True)
        rows = torch.cat([ends, rows[..., left + 1 :]], dim=-1)
    if right:
        ends = rows[..., -right - 1 :].sum(-1, keepdim=True)
        rows = torch.cat([rows[..., : -right - 1], ends], dim=-1)
    return rows


def pick(by_offset: Tensor, rows: Tensor) -> Tensor:
    """:func:`spread` for randomized positions: (..., T, N) and ``rows`` (T, S), which of the N
    values each query has for each key -> (..., T, S).
    """
    return by_offset.gather(-1, rows.expand(*by_offset.shape[:-1], -1))


def put(weights: Tensor, rows: Tensor, count: int) -> Tensor:
    """The transpose of :func:`pick`: (..., T, S) -> (..., T, ``count``)."""
    empty = weights.new_zeros(*weights.shape[:-1], count)
    return empty.scatter_add(-1, rows.expand_as(weights), weights)
