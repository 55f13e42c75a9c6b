"""TUPE: positions correlate with positions through projections of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import (
    CROSS,
    INIT_STD,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
    no_autocast,
)
from .beyond import REFUSE, read
from .factors import FactorBias
from .projections import Projections
from .spans import Span
from .t5 import Bucketed, T5Bias


class NormedPositions(nn.Module):
    """p (n, E) with its layer norm."""

    def __init__(self, positions: int, embed_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(positions, embed_dim))
        self.norm = nn.LayerNorm(embed_dim)
        nn.init.normal_(self.weight, std=INIT_STD)

    def forward(self, at: Span, beyond: str = REFUSE) -> Tensor:
        """The rows of T positions, normed, in float32 or better: (T, E)."""
        rows = read(self.weight, at, beyond)
        dtype = torch.promote_types(rows.dtype, torch.float32)
        scale, shift = self.norm.weight.to(dtype), self.norm.bias.to(dtype)
        return F.layer_norm(rows.to(dtype), rows.shape[-1:], scale, shift, self.norm.eps)


class TupeBias(FactorBias):
    """(p_i U_Q) . (p_j U_K) / sqrt(2 D) for all layers, (L|1, H|1, T, S), and ``relative`` on top.

    ``positions`` p serves queries and keys of self-attention; in cross-attention it is that of the
    target, and ``sources`` has the positions of the keys.

    Where the first token is [CLS] (equations 9 and 10), what it has to do with the others, and they
    with it, does not depend on how far away they are: row 0 is one number per head, and the rest of
    column 0 another, each made like the other entries, of a vector of its own behind the rows of p.
    """

    def __init__(self, shape: AttentionShape, sharing: Optional[str]) -> None:
        super().__init__(shape, sharing, lambda heads: Projections(heads, shape))
        more = 2 if shape.first_is_cls else 0
        self.positions = NormedPositions(shape.max_queries + more, shape.embed_dim)
        self.sources: Optional[NormedPositions] = None
        if shape.kind == CROSS:
            self.sources = NormedPositions(shape.max_keys, shape.embed_dim)
        self.relative: Optional[T5Bias] = None

    @property
    def is_product(self) -> bool:
        return self.relative is None and not self.shape.first_is_cls

    def factors(self, queries: Span, keys: Span) -> Tuple[Tensor, Tensor]:
        """p U_Q / sqrt(2 D) (L|1, H|1, T, D) and p U_K (L|1, H|1, S, D)."""
        beyond = self.shape.beyond
        of_keys = self.positions if self.sources is None else self.sources
        query, key = self.positions(queries, beyond), of_keys(keys, beyond)  # (T, E), (S, E)
        scale = (2 * self.shape.head_dim) ** -0.5
        with no_autocast(query.device):
            return query @ self.stacked("query") * scale, key @ self.stacked("key")

    def forward(self, queries: Span, keys: Span) -> Tensor:
        table = super().forward(queries, keys)
        if self.relative is not None:
            table = table + self.relative(queries, keys)
        if not self.shape.first_is_cls:
            return table
        # Randomized positions are those of whole sentences.
        return self.untied(table, row=isinstance(queries, Tensor) or queries.start == 0)

    def untied(self, table: Tensor, row: bool) -> Tensor:
        """``table`` (L|1, H|1, T, S) with the column of [CLS] replaced, and where it is a query its
        ``row``, too.
        """
        longest = self.shape.max_queries
        own = self.positions(range(longest, longest + 2))  # (2, E)
        with no_autocast(own.device):
            query, key = own @ self.stacked("query"), own @ self.stacked("key")  # (L|1, H|1, 2, D)
            of_cls = (query * key).sum(-1) * (2 * self.shape.head_dim) ** -0.5  # (L|1, H|1, 2)
        from_cls, to_cls = of_cls[..., :1, None], of_cls[..., 1:, None]
        column = to_cls.expand(*table.shape[:-1], 1)
        table = torch.cat([column, table[..., 1:]], dim=-1)
        if not row:
            return table
        first = from_cls.expand(*table.shape[:-2], 1, table.size(-1))
        return torch.cat([first, table[..., 1:, :]], dim=-2)


@dataclass(frozen=True)
class TupeAbs(PositionEncoding):
    """Ke et al. 2020, "Rethinking Positional Encoding in Language Pre-training"
    (arXiv:2006.15595), equation 7:

        A[i, j] = q_i . k_j / sqrt(2 D) + (p_i U_Q) . (p_j U_K) / sqrt(2 D)

    p has a layer norm, as in the paper's own code, whose U also has a bias; the equation has none,
    nor have we. U is shared by the layers by default; p is one table for all layers in every mode.
    Where we differ: the paper has encoders only; here each kind of attention has its p and U,
    cross-attention one p for target and one for source positions. [CLS] is untied in encoder-only
    models alone: in translation nothing stands for a whole sentence.
    ``--attention-scale`` concerns q . k, whose factor is divided by sqrt(2) here.
    """

    name: ClassVar[str] = "tupe-abs"
    default_sharing: ClassVar[Optional[str]] = "layer-wise"
    content_scale: ClassVar[float] = 2**-0.5

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return TupeBias(shape, self.sharing)


@dataclass(frozen=True)
class TupeRel(Bucketed):
    """Ke et al. 2020, equation 8: TUPE-A plus b[bucket(j - i)], the bias of T5.

    All else as in :class:`TupeAbs`; ``--position-sharing`` holds for U and for b.
    """

    name: ClassVar[str] = "tupe-rel"
    default_sharing: ClassVar[Optional[str]] = "layer-wise"
    content_scale: ClassVar[float] = 2**-0.5

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        bias = TupeBias(shape, self.sharing)
        bias.relative = T5Bias(shape, self.sharing, self.buckets, self.max_distance)
        return bias
