"""Shaw et al.: vectors by clipped distance, added to keys and optionally to values."""

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
    """a^K, ``of_keys``, and optionally a^V, ``of_values``: (H|1, 2c+1, D) each."""

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
    """Vectors by clipped distance, for keys and, with ``values``, for values.

    A layer has a^K, ``of_keys``, and a^V, ``of_values``, (H|1, 2c+1, D) each, row j - i + c for
    j - i. Initialized (Xavier) like a projection from 2c+1 one-hot distances to the head size.
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
    """Vectors of clipped distances (Shaw et al. 2018, arXiv:1803.02155, equations 4 and 3):

        A[i, j] = q_i . (k_j + a^K[clip(j - i)]) / sqrt(D)

    and, with ``--position-values``, values v_j + a^V[clip(j - i)]. By default, all heads of a layer
    share their vectors (section 3.3), and distances are clipped at 16 (``--position-clip``), as in
    the base model of section 4.1, which has vectors per head (``--position-sharing none``); the big
    model has a clip of 8. Where we differ: the paper has no positions in cross-attention
    (``--position-in encoder,decoder``); here cross-attention has its own vectors by default.
    """

    name = "shaw"
    default_sharing = "head-wise"
    color = "#009e73"

    clip: int = clip_option(16)
    values: bool = option("--position-values", False, "also add relative vectors to the values")

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return ShawPositions(shape, self.sharing, self.clip, self.values)
