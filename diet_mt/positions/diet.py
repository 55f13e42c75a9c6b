"""DIET-ABS and DIET-REL: low-rank absolute positions, or one scalar per distance, in the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from .base import (
    AttentionPositions,
    AttentionShape,
    Lengths,
    PositionEncoding,
    Table,
    normal,
)
from .factors import FactorBias
from .options import rank_option
from .position_ids import CLIP, REFUSE, PositionRange, resized_table
from .relative import RelativeBias


class DietAbsBias(FactorBias):
    """(P_Q P_K^T)[i, j] for all layers, (L|1, H|1, T, S); of one layer ``query`` P_Q (H|1, n_T, R)
    and ``key`` P_K (H|1, n_S, R).

    Neither may start at 0, where the gradient of each, which is the other, would vanish; INIT_STD
    leaves the product of rank 64 near 0.003.
    """

    def __init__(self, shape: AttentionShape, sharing: str | None, rank: int) -> None:
        def table(heads: int) -> Table:
            sizes = (heads, shape.max_queries, rank), (heads, shape.max_keys, rank)
            return Table(query=normal(sizes[0]), key=normal(sizes[1]))

        super().__init__(shape, sharing, table)

    def factors(self, queries: PositionRange, keys: PositionRange) -> tuple[Tensor, Tensor]:
        """P_Q (L|1, H|1, T, R) and P_K (L|1, H|1, S, R)."""
        return self.stacked("query", queries), self.stacked("key", keys)


@dataclass(frozen=True)
class DietAbs(PositionEncoding):
    """Chen et al. 2021, "A Simple and Effective Positional Encoding for Transformers"
    (arXiv:2104.08698), section 3.1, equation 1:

        A[i, j] = q_i . k_j / sqrt(D) + (P_Q P_K^T)[i, j]

    P_Q has a row for each query position, P_K one for each key position; in cross-attention these
    are target and source positions. The rank is the head size by default (``--position-rank``).
    Shared by the layers by default (tables 6 and 9). Where we differ: sqrt(D) for the printed
    sqrt(d), as for DIET-REL.
    """

    name = "diet-abs"
    default_sharing = "layer-wise"
    sentence_preset: ClassVar[dict[str, Any]] = {"rank": 128}  # section 4.1
    color = "#0072b2"

    rank: int | None = rank_option()

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return DietAbsBias(shape, self.sharing, self.rank or shape.head_dim)


class DietRelBias(RelativeBias):
    """R[i - j] for all layers, (L|1, H|1, T, S); of one layer ``by_offset`` R (H|1, n_T + n_S - 1),
    distance i - j in column i - j + n_S - 1. Starts at 0.
    """

    limited = True

    def __init__(self, shape: AttentionShape, sharing: str | None) -> None:
        size = shape.max_queries + shape.max_keys - 1
        super().__init__(shape, sharing, lambda heads: Table(by_offset=torch.zeros(heads, size)))

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        zero = self.shape.max_keys - 1  # the column of distance 0
        return self.stacked("by_offset", range(lowest + zero, highest + zero + 1), zero=zero)

    def resized(self, table: Tensor, own: Tensor, lengths: Lengths) -> Tensor:
        """Distance 0 stays distance 0; ends are repeated, as clipping does."""
        rule = self.shape.extrapolation
        queries, keys = lengths[self.shape.kind]
        if table.size(-1) != queries + keys - 1:  # randomized positions
            return table
        zeros = keys - 1, self.shape.max_keys - 1
        size, rule = own.size(-1), CLIP if rule == REFUSE else rule
        return resized_table(table, size, rule, dim=table.dim() - 1, zeros=zeros)


@dataclass(frozen=True)
class DietRel(PositionEncoding):
    """Chen et al. 2021, "A Simple and Effective Positional Encoding for Transformers"
    (arXiv:2104.08698), section 3.2, equation 3:

        A[i, j] = q_i . k_j / sqrt(D) + R[i - j]

    R is one scalar per distance, unclipped and without buckets, in encoder, decoder and
    cross-attention, where i counts target and j source positions. Unshared by default: sharing
    hurts (table 9). Where we differ: the paper prints sqrt(d); the implementations that it builds
    on have sqrt(D) (see ``--attention-scale``).
    """

    name = "diet-rel"
    default_sharing = "none"
    color = "#d55e00"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return DietRelBias(shape, self.sharing)
