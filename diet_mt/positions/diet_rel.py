"""DIET-REL: one scalar per head for each distance between query and key, added to the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional

import torch
from torch import Tensor, nn

from .base import AttentionShape, PositionEncoding
from .relative import RelativeBias


class DistanceTable(nn.Module):
    """R of one layer: (H|1, n_T + n_S - 1), the value for distance i - j in column i - j + n_S - 1.

    Starts at 0. (The parameter keeps its old name, which checkpoints know.)
    """

    def __init__(self, heads: int, shape: AttentionShape) -> None:
        super().__init__()
        self.by_offset = nn.Parameter(torch.zeros(heads, shape.max_queries + shape.max_keys - 1))


class DietRelBias(RelativeBias):
    """R[i - j] for all layers: (L|1, H|1, T, S)."""

    def __init__(self, shape: AttentionShape, sharing: Optional[str]) -> None:
        super().__init__(shape, sharing, lambda heads: DistanceTable(heads, shape))

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        zero = self.shape.max_keys - 1  # the column of distance 0
        return self.stacked("by_offset", range(lowest + zero, highest + zero + 1), zero=zero)


@dataclass(frozen=True)
class DietRel(PositionEncoding):
    """Chen et al. 2021, "A Simple and Effective Positional Encoding for Transformers"
    (arXiv:2104.08698), section 3.2, equation 3:

        A[i, j] = q_i . k_j / sqrt(D) + R[i - j]

    R is one scalar per distance, unclipped and without buckets, for queries and keys alike in
    encoder, decoder and cross-attention, where i counts target and j source positions. Unshared by
    default: sharing hurts (table 9). Where we differ: the paper prints sqrt(d); sqrt(D) is what it
    builds on (see ``--attention-scale``).
    """

    name: ClassVar[str] = "diet-rel"
    default_sharing: ClassVar[Optional[str]] = "none"

    def in_attention(self, shape: AttentionShape) -> DietRelBias:
        return DietRelBias(shape, self.sharing)
