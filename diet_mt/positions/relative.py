"""Biases and vectors by distance, and their expansion to one entry per query and key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .base import AttentionBias, AttentionPositions, ScoreMod
from .position_ids import PositionRange, as_tensor, distance_limits, num_positions
from .terms import PositionTerms, Row, select_row


def distances(lowest: int, highest: int, device: torch.device) -> Tensor:
    """The integers from ``lowest`` to ``highest``, both included."""
    return torch.arange(lowest, highest + 1, device=device)


def toeplitz(window: Tensor, query_len: int) -> Tensor:
    """(..., T + S - 1) -> (..., T, S) with ``out[i, j] = window[S - 1 + i - j]``.

    Row i is a slice of the window from i, reversed: one copy, and no table of indices.
    """
    return window.unfold(-1, window.size(-1) - query_len + 1, 1).flip(-1)


class RelativeBias(AttentionBias):
    """A bias that depends on the distance i - j only: a formula, or a table if ``limited``."""

    limited = False

    @abstractmethod
    def by_distance(self, lowest: int, highest: int) -> Tensor:
        """Values of the distances ``lowest`` to ``highest``, both included: (L|1, H|1, count)."""

    def tabulate(self) -> None:
        """Stores the values of all distances, (L|1, H|1, n_T + n_S - 1)."""
        window = self.by_distance(1 - self.shape.max_keys, self.shape.max_queries - 1)
        window = window.to(self.like.dtype)
        vars(self)["by_distance"] = lambda lowest, highest: window

    def forward(self, queries: PositionRange, keys: PositionRange) -> Tensor:
        window, lowest = self._window(queries, keys)
        if isinstance(queries, range) and isinstance(keys, range):
            return toeplitz(window, num_positions(queries))
        device = window.device
        column = as_tensor(queries, device)[:, None] - as_tensor(keys, device) - lowest  # (T, S)
        bias: Tensor = window.index_select(-1, column.flatten()).unflatten(-1, column.shape)
        return bias

    def _window(self, queries: PositionRange, keys: PositionRange) -> tuple[Tensor, int]:
        """Values of all distances of these positions, (L|1, H|1, count); the lowest distance."""
        if isinstance(queries, range) and isinstance(keys, range):
            limits = distance_limits(queries, keys)
        else:  # all distances of the model, since reading the positions would wait for the GPU
            limits = 1 - self.shape.max_keys, self.shape.max_queries - 1
        return self.by_distance(*limits), limits[0]

    def score_mods(self, queries: PositionRange, keys: PositionRange) -> list[ScoreMod]:
        self.check(queries, keys)
        window, lowest = self._window(queries, keys)
        by_head = window.expand(-1, self.shape.heads, -1).contiguous()
        # Tensors, since numbers would be constants of the compiled graph.
        at = as_tensor(queries, window.device) - lowest, as_tensor(keys, window.device)
        return self.per_layer([_adding(values, *at) for values in by_head.unbind(0)])


def _adding(window: Tensor, rows: Tensor, columns: Tensor) -> ScoreMod:
    """Adds ``window[h, rows[i] - columns[j]]`` to the logit of head h, query i and key j."""

    def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return score + window[h, rows[i] - columns[j]]

    return score_mod


@dataclass(frozen=True, kw_only=True)
class ClippedTerms(PositionTerms):
    """Vectors by clipped distance that are added to the keys.

    ``of_keys``: (H|1, 2c+1, D), row j - i + c for clipped j - i. ``query_len`` consecutive queries
    start at ``query_start``; with ``rows`` (T, S), the row of each query and key, at any positions.
    """

    of_keys: Tensor
    query_start: int = 0
    query_len: int = 1
    rows: Tensor | None = None

    def step(self, row: Row, keys: int) -> ClippedTerms:
        if self.rows is not None:
            return replace(self, query_len=1, rows=select_row(self.rows, row, 0)[:, :keys])
        assert isinstance(row, int)
        return replace(self, query_start=self.query_start + row, query_len=1)

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Tensor:
        products = (q * scale) @ self.of_keys.to(q.dtype).transpose(-1, -2)  # (B, H, T, 2c+1)
        if self.rows is not None:
            return gather_indexed(products, self.rows)
        return self.by_position(gather_relative, products, keys)

    def by_position(self, move: Callable[..., Tensor], rows: Tensor, size: int) -> Tensor:
        """Applies ``move``, :func:`gather_relative` or :func:`scatter_relative`, to ``rows``."""
        if self.query_len > 1:
            return move(rows, size, self.query_start)
        # Rows at one position, such as the beams of a sentence, are not consecutive queries.
        return move(rows.unsqueeze(-2), size, self.query_start).squeeze(-2)


class ClippedPositions(AttentionPositions):
    """Terms that depend on the distance, clipped at c."""

    limited = False
    clip: int

    @abstractmethod
    def terms_up_to(self, furthest: int, **queries: Any) -> list[PositionTerms]:
        """Terms of each layer for distances up to ``furthest``, which is at most the clip.

        ``queries``: the fields of :class:`ClippedTerms` for the positions of the queries.
        """

    def tabulate(self) -> None:
        """Stores the vectors of all clipped distances, (H|1, 2c+1, D) in each layer."""
        stored = self.terms_up_to(min(self.clip, max(self.shape.max_queries, self.shape.max_keys)))
        vars(self)["terms_up_to"] = lambda _, **queries: [replace(x, **queries) for x in stored]

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        if isinstance(queries, range) and isinstance(keys, range):
            # Only vectors of distances that occur: their products with queries cost most.
            furthest = max(*map(abs, distance_limits(queries, keys)), 1)
            return self.terms_up_to(
                min(self.clip, furthest),
                query_start=queries.start,
                query_len=num_positions(queries),
            )
        clip = min(self.clip, max(self.shape.max_queries, self.shape.max_keys))
        device = self.like.device
        offset = as_tensor(keys, device) - as_tensor(queries, device)[:, None]  # (T, S)
        rows = offset.clamp(-clip, clip) + clip
        return self.terms_up_to(clip, query_len=num_positions(queries), rows=rows)


def gather_relative(by_offset: Tensor, keys: int, start: int = 0) -> Tensor:
    """Values per query and clipped offset, (..., T, 2c+1) -> per query and key, (..., T, S).

    ``out[i, j] = by_offset[i, clip(j - (start + i)) + c]``. Each row is first extended to all
    offsets, from the first key and last query to the last key and first query, by repeating its
    ends. The concatenated rows are then read as rows shorter by one element, each of which starts
    one column further left in its extended row than the row above. Only blocks are copied.
    """
    queries, clip = by_offset.size(-2), by_offset.size(-1) // 2
    lowest, highest = 1 - queries - start, keys - 1 - start  # offsets
    extended = queries + keys - 1
    left = min(max(-lowest - clip, 0), extended)  # offsets beyond the clip
    right = max(highest - clip, 0)
    middle = by_offset[..., max(clip + lowest, 0) : max(min(clip + highest, 2 * clip) + 1, 0)]
    ends = by_offset[..., :1], by_offset[..., -1:]
    shape = by_offset.shape[:-1]
    rows = torch.cat([ends[0].expand(*shape, left), middle, ends[1].expand(*shape, right)], dim=-1)
    if queries == 1:
        return rows
    short = extended - 1
    line = rows.flatten(-2).narrow(-1, queries - 1, queries * short)
    shifted: Tensor = line.unflatten(-1, (queries, short))
    return shifted[..., :keys]


def scatter_relative(weights: Tensor, clip: int, start: int = 0) -> Tensor:
    """Sums of weights (..., T, S) per query and clipped offset: (..., T, 2c+1).

    The transpose of :func:`gather_relative`.
    """
    queries, keys = weights.shape[-2:]
    rows = weights
    if queries > 1:
        line = F.pad(weights, (0, queries - 2)).flatten(-2)
        rows = F.pad(line, (queries - 1, 1)).unflatten(-1, (queries, queries + keys - 1))
    lowest, highest = 1 - queries - start, keys - 1 - start  # offsets
    # Offsets that do not occur have columns of zeros.
    rows = F.pad(rows, (max(clip + lowest, 0), max(clip - highest, 0)))
    left, right = max(-lowest - clip, 0), max(highest - clip, 0)
    if left:
        ends = rows[..., : left + 1].sum(-1, keepdim=True)
        rows = torch.cat([ends, rows[..., left + 1 :]], dim=-1)
    if right:
        ends = rows[..., -right - 1 :].sum(-1, keepdim=True)
        rows = torch.cat([rows[..., : -right - 1], ends], dim=-1)
    return rows


def gather_indexed(by_offset: Tensor, rows: Tensor) -> Tensor:
    """:func:`gather_relative` at any positions: (..., T, N) -> (..., T, S).

    ``rows``: (T, S), the index below N for each query and key.
    """
    return by_offset.gather(-1, rows.expand(*by_offset.shape[:-1], -1))


def scatter_indexed(weights: Tensor, rows: Tensor, size: int) -> Tensor:
    """The transpose of :func:`gather_indexed`: (..., T, S) -> (..., T, N = ``size``)."""
    zeros = weights.new_zeros(*weights.shape[:-1], size)
    return zeros.scatter_add(-1, rows.expand_as(weights), weights)
