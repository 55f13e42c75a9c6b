"""TUPE: correlations of positions with separate projections, added to the logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..nn.precision import at_least_float32, no_autocast
from .base import CROSS, AttentionPositions, AttentionShape, PositionEncoding, normal, projections
from .factors import FactorBias
from .position_ids import REFUSE, PositionRange, read_table
from .t5 import Bucketed, T5Bias


class NormedPositions(nn.Module):
    """The table p (n, E) with its layer norm."""

    def __init__(self, positions: int, embed_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(normal((positions, embed_dim)))
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, at: PositionRange, extrapolation: str = REFUSE) -> Tensor:
        """Normalized rows of T positions, in float32 or better: (T, E)."""
        rows = read_table(self.weight, at, extrapolation)
        dtype = at_least_float32(rows.dtype)
        scale, shift = self.norm.weight.to(dtype), self.norm.bias.to(dtype)
        return F.layer_norm(rows.to(dtype), rows.shape[-1:], scale, shift, self.norm.eps)


class TupeBias(FactorBias):
    """(p_i U_Q) . (p_j U_K) / sqrt(2 D) in all layers, (L|1, H|1, T, S), plus ``relative``.

    ``positions``: p of queries and, in self-attention, of keys; ``sources``: p of the keys in
    cross-attention, otherwise None.

    If the first token is [CLS] (equations 9 and 10), its row and column do not depend on positions:
    row 0 is one number per head, the rest of column 0 another. Each is computed like the other
    entries, from an additional row of p.
    """

    def __init__(self, shape: AttentionShape, sharing: str | None) -> None:
        super().__init__(shape, sharing, lambda heads: projections(heads, shape))
        additional = 2 if shape.first_is_cls else 0
        self.positions = NormedPositions(shape.max_queries + additional, shape.embed_dim)
        self.sources: NormedPositions | None = None
        if shape.kind == CROSS:
            self.sources = NormedPositions(shape.max_keys, shape.embed_dim)
        self.relative: T5Bias | None = None

    @property
    def is_product(self) -> bool:
        return self.relative is None and not self.shape.first_is_cls

    def factors(self, queries: PositionRange, keys: PositionRange) -> tuple[Tensor, Tensor]:
        """p U_Q / sqrt(2 D) (L|1, H|1, T, D) and p U_K (L|1, H|1, S, D)."""
        rule = self.shape.extrapolation
        of_keys = self.positions if self.sources is None else self.sources
        query, key = self.positions(queries, rule), of_keys(keys, rule)  # (T, E), (S, E)
        scale = (2 * self.shape.head_dim) ** -0.5
        with no_autocast(query.device):
            return query @ self.stacked("query") * scale, key @ self.stacked("key")

    def forward(self, queries: PositionRange, keys: PositionRange) -> Tensor:
        bias = super().forward(queries, keys)
        if self.relative is not None:
            bias = bias + self.relative(queries, keys)
        if not self.shape.first_is_cls:
            return bias
        # A tensor, of randomized positions, begins with the first token of a sentence.
        return self.untie_cls(bias, row=isinstance(queries, Tensor) or queries.start == 0)

    def untie_cls(self, bias: Tensor, row: bool) -> Tensor:
        """``bias`` (L|1, H|1, T, S) with column 0, of [CLS], replaced, and row 0 if ``row``."""
        longest = self.shape.max_queries
        additional = self.positions(range(longest, longest + 2))  # (2, E)
        with no_autocast(additional.device):
            query, key = (additional @ self.stacked(name) for name in ("query", "key"))
            of_cls = (query * key).sum(-1) * (2 * self.shape.head_dim) ** -0.5  # (L|1, H|1, 2)
        from_cls, to_cls = of_cls[..., :1, None], of_cls[..., 1:, None]
        column = to_cls.expand(*bias.shape[:-1], 1)
        bias = torch.cat([column, bias[..., 1:]], dim=-1)
        if not row:
            return bias
        first = from_cls.expand(*bias.shape[:-2], 1, bias.size(-1))
        return torch.cat([first, bias[..., 1:, :]], dim=-2)


@dataclass(frozen=True)
class TupeAbs(PositionEncoding):
    """TUPE-A: correlations of absolute positions (Ke et al. 2020, arXiv:2006.15595, equation 7):

        A[i, j] = q_i . k_j / sqrt(2 D) + (p_i U_Q) . (p_j U_K) / sqrt(2 D)

    p has a layer norm, as in the paper's own code; U has no bias, as in the equation but unlike the
    code. Layers share U by default, and p with any ``--position-sharing``. Where we differ: the
    paper has encoders only; here each kind of attention has its own p and U, cross-attention
    separate p for target and source. [CLS] is untied in encoder-only models only, since in
    translation no token represents a whole sentence. ``--attention-scale`` changes the factor of
    q . k, which is divided by sqrt(2).
    """

    name = "tupe-abs"
    default_sharing = "layer-wise"
    content_scale = 2**-0.5
    color = "#56b4e9"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return TupeBias(shape, self.sharing)


@dataclass(frozen=True)
class TupeRel(Bucketed):
    """TUPE-R (Ke et al. 2020, equation 8): TUPE-A plus b[bucket(j - i)], the bias of T5.

    All else is as in :class:`TupeAbs`; ``--position-sharing`` applies to U and b.
    """

    name = "tupe-rel"
    default_sharing = "layer-wise"
    content_scale = 2**-0.5
    color = "#332288"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        bias = TupeBias(shape, self.sharing)
        bias.relative = T5Bias(shape, self.sharing, self.buckets, self.max_distance)
        return bias
