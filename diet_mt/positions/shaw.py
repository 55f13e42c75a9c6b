"""Shaw et al.: a vector for each clipped distance, added to keys and, if asked, to values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, List, Optional

import torch
from torch import Tensor, nn

from .base import AttentionShape, PositionEncoding
from .clipped import ClippedLayer, ClippedPositions, clip_option, collect, put
from .layer import LayerPositions
from .options import option


@dataclass(frozen=True)
class ShawLayer(ClippedLayer):
    """``of_keys`` a^K and ``of_values`` a^V, (H|1, 2c+1, D) each; without a^V values stay."""

    of_values: Optional[Tensor] = None

    @property
    def changes_output(self) -> bool:
        return self.of_values is not None

    def output(self, weights: Tensor) -> Optional[Tensor]:
        if self.of_values is None:
            return None
        vectors = self.of_values.to(weights.dtype)
        if self.rows is not None:
            return put(weights, self.rows, vectors.size(-2)) @ vectors
        return self.by_position(collect, weights, vectors.size(-2) // 2) @ vectors


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


class ShawPositions(ClippedPositions):
    """Vectors by clipped distance for all layers."""

    def __init__(
        self, shape: AttentionShape, sharing: Optional[str], clip: int, values: bool
    ) -> None:
        super().__init__(
            shape, sharing, lambda heads: DistanceVectors(heads, clip, shape.head_dim, values)
        )
        self.clip = clip

    def up_to(self, furthest: int, **where: Any) -> List[LayerPositions]:
        left_out = self.clip - furthest
        rows = range(left_out, 2 * self.clip + 1 - left_out)
        names = [name for name, _ in self.tables()[0].named_parameters()]
        stacks = [self.stacked(name, rows).unbind(0) for name in names]
        return [
            ShawLayer(**where, **dict(zip(names, vectors, strict=True)))
            for vectors in zip(*stacks, strict=True)
        ]


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

    clip: int = clip_option(16)
    values: bool = option(
        "--position-values", False, "vectors of distances are added to the values, too"
    )

    def in_attention(self, shape: AttentionShape) -> ShawPositions:
        return ShawPositions(shape, self.sharing, self.clip, self.values)
