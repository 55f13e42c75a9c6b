"""DIET-ABS and DIET-REL: low-rank absolute positions, or one scalar per distance, in the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from .base import AttentionPositions, AttentionShape, Lengths, PositionEncoding, Table, normal
from .factors import FactorBias
from .options import rank_option
from .position_ids import CLIP, REFUSE, PositionRange, resized_table
from .relative import RelativeBias


class DietAbsBias(FactorBias):
    """(P_Q P_K^T)[i, j] in all layers: (L|1, H|1, T, S).

    A layer has P_Q, ``query`` (H|1, n_T, R), and P_K, ``key`` (H|1, n_S, R). Neither starts at 0,
    since the gradient of each is proportional to the other; with INIT_STD and rank 64, the standard
    deviation of the product is about 0.003.
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
    """DIET-ABS: a low-rank product (Chen et al. 2021, arXiv:2104.08698, section 3.1, eq. 1):

        A[i, j] = q_i . k_j / sqrt(D) + (P_Q P_K^T)[i, j]

    P_Q has a row per query position, P_K a row per key position; in cross-attention these are
    target and source positions. By default, the rank is the head size (``--position-rank``), and
    layers share both (tables 6 and 9). Where we differ: as in DIET-REL, sqrt(D), not sqrt(d).
    """

    name = "diet-abs"
    default_sharing = "layer-wise"
    sentence_preset: ClassVar[dict[str, Any]] = {"rank": 128}  # section 4.1
    color = "#0072b2"

    rank: int | None = rank_option()

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return DietAbsBias(shape, self.sharing, self.rank or shape.head_dim)


class DietRelBias(RelativeBias):
    """R[i - j] in all layers: (L|1, H|1, T, S).

    A layer has R, ``by_offset`` (H|1, n_T + n_S - 1), initially 0; column i - j + n_S - 1 holds
    distance i - j.
    """

    limited = True

    def __init__(self, shape: AttentionShape, sharing: str | None) -> None:
        size = shape.max_queries + shape.max_keys - 1
        super().__init__(shape, sharing, lambda heads: Table(by_offset=torch.zeros(heads, size)))

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        zero = self.shape.max_keys - 1  # the column of distance 0
        return self.stacked("by_offset", range(lowest + zero, highest + zero + 1), zero=zero)

    def resized(self, table: Tensor, own: Tensor, lengths: Lengths) -> Tensor:
        """Aligned at distance 0; with ``refuse``, ends are extended as with ``clip``."""
        rule = self.shape.extrapolation
        queries, keys = lengths[self.shape.kind]
        if table.size(-1) != queries + keys - 1:  # of randomized positions
            return table
        zeros = keys - 1, self.shape.max_keys - 1
        size, rule = own.size(-1), CLIP if rule == REFUSE else rule
        return resized_table(table, size, rule, dim=table.dim() - 1, zeros=zeros)


@dataclass(frozen=True)
class DietRel(PositionEncoding):
    """DIET-REL: a scalar per distance (Chen et al. 2021, arXiv:2104.08698, section 3.2, eq. 3):

        A[i, j] = q_i . k_j / sqrt(D) + R[i - j]

    Distances have neither clip nor buckets. In cross-attention, i counts target and j source
    positions. Nothing is shared by default, since sharing hurts (table 9). Where we differ: the
    paper prints sqrt(d); the implementations that it builds on have sqrt(D) (see
    ``--attention-scale``).
    """

    name = "diet-rel"
    default_sharing = "none"
    color = "#d55e00"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return DietRelBias(shape, self.sharing)
