"""Shaw et al.: a vector for each clipped distance, added to keys and, if asked, to values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, ClassVar, List, Optional

import torch
from torch import Tensor, nn

from .base import AttentionPositions, AttentionShape, PositionEncoding
from .clipped import collect, pick, put, spread
from .layer import LayerPositions
from .options import option


@dataclass(frozen=True)
class ShawLayer(LayerPositions):
    """``of_keys`` a^K and ``of_values`` a^V, (H|1, 2c+1, D) each; without a^V values stay.

    Queries stand from ``query_start`` to ``query_start + query_len - 1``, or, where ``rows`` is
    given, anywhere: it has for each of them the row of each key, (T, S).
    """

    of_keys: Optional[Tensor] = None
    of_values: Optional[Tensor] = None
    query_start: int = 0
    query_len: int = 1
    rows: Optional[Tensor] = None

    def step(self, row: int, keys: int) -> ShawLayer:
        rows = None if self.rows is None else self.rows[row : row + 1, :keys]
        return replace(self, query_start=self.query_start + row, query_len=1, rows=rows)

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Tensor:
        assert self.of_keys is not None
        products = (q * scale) @ self.of_keys.to(q.dtype).transpose(-1, -2)  # (B, H, T, 2c+1)
        if self.rows is not None:
            return pick(products, self.rows)
        return self._by_position(spread, products, keys)

    @property
    def changes_output(self) -> bool:
        return self.of_values is not None

    def output(self, weights: Tensor) -> Optional[Tensor]:
        if self.of_values is None:
            return None
        vectors = self.of_values.to(weights.dtype)
        if self.rows is not None:
            return put(weights, self.rows, vectors.size(-2)) @ vectors
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
        self.clip = clip

    def for_layers(self, query_start: int, query_len: int, key_len: int) -> List[LayerPositions]:
        # No more vectors than there are distances: their products with queries cost most.
        furthest = max(query_start + query_len - 1, key_len - 1 - query_start, 1)
        return self._parts(furthest, query_start=query_start, query_len=query_len)

    def at(self, queries: Tensor, keys: Tensor) -> List[LayerPositions]:
        rows = (keys - queries[:, None]).clamp(-self.clip, self.clip) + self.clip  # (T, S)
        return self._parts(self.clip, query_len=queries.numel(), rows=rows)

    def _parts(self, furthest: int, **where: Any) -> List[LayerPositions]:
        """For distances up to ``furthest``, or the clip."""
        left_out = max(self.clip - furthest, 0)
        rows = left_out, 2 * self.clip + 1 - left_out
        names = [name for name, _ in self.tables()[0].named_parameters()]
        stacks = [self.stacked(name, *rows).unbind(0) for name in names]
        return self.each(
            [
                ShawLayer(**where, **dict(zip(names, vectors, strict=True)))
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
