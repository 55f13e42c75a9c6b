"""Shaw et al.: a vector for each clipped distance, added to keys and optionally to values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .base import AttentionPositions, AttentionShape, PositionEncoding, Table
from .options import clip_option, option
from .relative import ClippedPositions, ClippedTerms, scatter_indexed, scatter_relative
from .terms import PositionTerms


@dataclass(frozen=True)
class ShawTerms(ClippedTerms):
    """``of_keys`` a^K and ``of_values`` a^V, (H|1, 2c+1, D) each; a^V is optional."""

    of_values: Tensor | None = None

    @property
    def changes_output(self) -> bool:
        return self.of_values is not None

    def output(self, weights: Tensor) -> Tensor | None:
        if self.of_values is None:
            return None
        vectors = self.of_values.to(weights.dtype)
        if self.rows is not None:
            return scatter_indexed(weights, self.rows, vectors.size(-2)) @ vectors
        return self.by_position(scatter_relative, weights, vectors.size(-2) // 2) @ vectors


class ShawPositions(ClippedPositions):
    """Vectors by clipped distance; of one layer ``of_keys`` a^K and, with ``values``,
    ``of_values`` a^V, (H|1, 2c+1, D) each, row j - i + c for j - i.

    Initialized like a projection from distances to head size, of which each distance is a row.
    """

    def __init__(self, shape: AttentionShape, sharing: str | None, clip: int, values: bool) -> None:
        def table(heads: int) -> Table:
            names = ("of_keys", "of_values") if values else ("of_keys",)
            tables = {name: torch.empty(heads, 2 * clip + 1, shape.head_dim) for name in names}
            for rows in (rows for vectors in tables.values() for rows in vectors):
                nn.init.xavier_uniform_(rows)
            return Table(**tables)

        super().__init__(shape, sharing, table)
        self.clip = clip

    def terms_up_to(self, furthest: int, **queries: Any) -> list[PositionTerms]:
        unused = self.clip - furthest
        rows = range(unused, 2 * self.clip + 1 - unused)
        names = [name for name, _ in self.tables()[0].named_parameters()]
        stacks = [self.stacked(name, rows).unbind(0) for name in names]
        return [
            ShawTerms(**queries, **dict(zip(names, vectors, strict=True)))
            for vectors in zip(*stacks, strict=True)
        ]


@dataclass(frozen=True)
class Shaw(PositionEncoding):
    """Shaw et al. 2018, "Self-Attention with Relative Position Representations"
    (arXiv:1803.02155), equations 3 and 4:

        A[i, j] = q_i . (k_j + a^K[clip(j - i)]) / sqrt(D)

    and, with ``--position-values``, values v_j + a^V[clip(j - i)]. One set of vectors per layer
    for all its heads (section 3.3); distances are clipped at 16, as in the base model of section
    4.1 (``--position-clip``; its big model has 8). That base model has a set for every head:
    ``--position-sharing none``. Where we differ: the paper has no positions in cross-attention
    (``--position-in encoder,decoder``); here cross-attention has its own vectors by default.
    """

    name = "shaw"
    default_sharing = "head-wise"
    color = "#009e73"

    clip: int = clip_option(16)
    values: bool = option("--position-values", False, "also add vectors of distances to the values")

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return ShawPositions(shape, self.sharing, self.clip, self.values)
