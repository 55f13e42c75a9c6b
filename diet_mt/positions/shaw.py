"""Shaw et al.: a vector for each clipped distance, added to keys and, if asked, to values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, ClassVar, List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import AttentionPositions, AttentionShape, PositionEncoding
from .layer import LayerPositions
from .options import option


def spread(by_distance: Tensor, keys: int, start: int = 0) -> Tensor:
    """(..., T, 2c+1), for each query one value per clipped distance -> (..., T, S) with
    ``out[i, j] = by_distance[i, clip(j - (start + i)) + c]``.

    Each row is first stretched to all distances from the first key to the last query, up to that
    from the last key to the first, its ends repeated. The rows, laid end to end, are then read
    again one element shorter, which shifts each one column further left than the row above. All of
    it copies blocks; nothing is gathered element by element.
    """
    queries, clip = by_distance.size(-2), by_distance.size(-1) // 2
    lowest, highest = 1 - queries - start, keys - 1 - start  # distances
    stretched = queries + keys - 1
    left = min(max(-lowest - clip, 0), stretched)  # of them beyond the clip
    right = max(highest - clip, 0)
    middle = by_distance[..., max(clip + lowest, 0) : max(min(clip + highest, 2 * clip) + 1, 0)]
    ends = by_distance[..., :1], by_distance[..., -1:]
    shape = by_distance.shape[:-1]
    rows = torch.cat([ends[0].expand(*shape, left), middle, ends[1].expand(*shape, right)], dim=-1)
    if queries == 1:
        return rows
    short = stretched - 1
    line = rows.flatten(-2).narrow(-1, queries - 1, queries * short)
    shifted: Tensor = line.unflatten(-1, (queries, short))
    return shifted[..., :keys]


def collect(weights: Tensor, clip: int, start: int = 0) -> Tensor:
    """The transpose of :func:`spread`: (..., T, S) -> (..., T, 2c+1), for each query the sum of its
    weights at each clipped distance.
    """
    queries, keys = weights.shape[-2:]
    rows = weights
    if queries > 1:
        line = F.pad(weights, (0, queries - 2)).flatten(-2)
        rows = F.pad(line, (queries - 1, 1)).unflatten(-1, (queries, queries + keys - 1))
    lowest, highest = 1 - queries - start, keys - 1 - start  # distances
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


@dataclass(frozen=True)
class ShawLayer(LayerPositions):
    """``of_keys`` a^K and ``of_values`` a^V, (H|1, 2c+1, D) each; without a^V values stay.

    Queries stand from ``query_start`` to ``query_start + query_len - 1``.
    """

    of_keys: Optional[Tensor] = None
    of_values: Optional[Tensor] = None
    query_start: int = 0
    query_len: int = 1

    def step(self, row: int, keys: int) -> ShawLayer:
        return replace(self, query_start=self.query_start + row, query_len=1)

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Tensor:
        assert self.of_keys is not None
        products = (q * scale) @ self.of_keys.to(q.dtype).transpose(-1, -2)
        return self._by_position(spread, products, keys)

    @property
    def changes_output(self) -> bool:
        return self.of_values is not None

    def output(self, weights: Tensor) -> Optional[Tensor]:
        if self.of_values is None:
            return None
        vectors = self.of_values.to(weights.dtype)
        return self._by_position(collect, weights, vectors.size(-2) // 2) @ vectors

    def _by_position(self, move: Callable[..., Tensor], rows: Tensor, size: int) -> Tensor:
        """:func:`spread` or :func:`collect` of ``rows``, from where the queries stand."""
        if self.query_len > 1:
            return move(rows, size, self.query_start)
        # Rows at one position, such as a sentence's beams, are not one query after the other.
        return move(rows.unsqueeze(-2), size, self.query_start).squeeze(-2)


class DistanceVectors(nn.Module):
    """a^K and, if asked, a^V of one layer: (H|1, 2c+1, D), row j - i + c for j - i."""

    def __init__(self, heads: int, clip: int, head_dim: int, values: bool) -> None:
        super().__init__()
        shape = heads, 2 * clip + 1, head_dim
        self.of_keys = nn.Parameter(torch.empty(shape))
        self.of_values = nn.Parameter(torch.empty(shape)) if values else None
        for table in self.parameters():
            for rows in table:
                # Each distance is one row of a projection from distances to head size.
                nn.init.xavier_uniform_(rows)


class ShawPositions(AttentionPositions):
    """Vectors by clipped distance for all layers."""

    limited: ClassVar[bool] = False

    def __init__(
        self, shape: AttentionShape, sharing: Optional[str], clip: int, values: bool
    ) -> None:
        super().__init__(
            shape, sharing, lambda heads: DistanceVectors(heads, clip, shape.head_dim, values)
        )

    def for_layers(self, query_start: int, query_len: int, key_len: int) -> List[LayerPositions]:
        names = [name for name, _ in self.tables()[0].named_parameters()]
        stacks = [self.stacked(name).unbind(0) for name in names]
        return self.each(
            [
                ShawLayer(
                    query_start=query_start,
                    query_len=query_len,
                    **dict(zip(names, vectors, strict=True)),
                )
                for vectors in zip(*stacks, strict=True)
            ]
        )


@dataclass(frozen=True)
class Shaw(PositionEncoding):
    """Shaw et al. 2018, "Self-Attention with Relative Position Representations"
    (arXiv:1803.02155), equations 3 and 4:

        A[i, j] = q_i . (k_j + a^K[clip(j - i)]) / sqrt(D)

    and, with ``--position-values``, values v_j + a^V[clip(j - i)]. One set of vectors per layer
    for all its heads (section 3.3); distances are clipped at 16, as in the base model of section
    4.1 (``--position-clip``; its big model has 8). That base model has a set of its own for every
    head: ``--position-sharing none``. Where we differ: the paper leaves cross-attention without
    positions (``--position-in encoder,decoder``); here it has vectors of its own by default.
    """

    name: ClassVar[str] = "shaw"
    default_sharing: ClassVar[Optional[str]] = "head-wise"

    clip: int = option("clip", 16)
    values: bool = option("values", False)

    def attention_positions(self, shape: AttentionShape) -> ShawPositions:
        return ShawPositions(shape, self.sharing, self.clip, self.values)
