"""DIET-REL: one scalar per head for each offset between query and key, added to the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional

import torch
from torch import Tensor, nn

from .base import AttentionBias, AttentionShape, PositionEncoding


class OffsetTable(nn.Module):
    """R of one layer: (H|1, n_T + n_S - 1), the value for offset o = i - j in column o + n_S - 1.
    Starts at 0.
    """

    def __init__(self, heads: int, shape: AttentionShape) -> None:
        super().__init__()
        self.by_offset = nn.Parameter(torch.zeros(heads, shape.max_queries + shape.max_keys - 1))


def toeplitz(window: Tensor, query_len: int) -> Tensor:
    """(..., T + S - 1) -> (..., T, S) with ``out[i, j] = window[S - 1 + i - j]``.

    Every row is the reversed window, each shifted one column further left than the row above. The
    shift costs no index table and no scatter in the backward pass: T copies of the reversed window,
    laid end to end, are read again with rows that are one element shorter; the gradient is then a
    plain sum over the copies.
    """
    size = window.size(-1)
    backward = window.flip(-1)  # (..., T+S-1)
    if query_len == 1:
        return backward.unsqueeze(-2)  # (..., 1, S)
    copies = backward.unsqueeze(-2).expand(*window.shape[:-1], query_len, size)
    line = copies.reshape(*window.shape[:-1], query_len * size)  # (..., T*(T+S-1))
    skewed = line.narrow(-1, query_len - 1, query_len * (size - 1))
    rows: Tensor = skewed.unflatten(-1, (query_len, size - 1))  # (..., T, T+S-2)
    return rows[..., : size - query_len + 1]  # (..., T, S)


class DietRelBias(AttentionBias):
    """R[i - j] for all layers: (L|1, H|1, T, S)."""

    def __init__(self, shape: AttentionShape, sharing: str) -> None:
        super().__init__(shape, sharing, lambda heads: OffsetTable(heads, shape))

    def forward(self, query_start: int, query_len: int, key_len: int) -> Tensor:
        self.check_range(query_start, query_len, key_len)
        lowest = query_start - (key_len - 1) + self.shape.max_keys - 1
        window = self.stacked("by_offset", lowest, lowest + query_len + key_len - 1)
        return toeplitz(window, query_len)


@dataclass(frozen=True)
class DietRel(PositionEncoding):
    """Chen et al. 2021, "A Simple and Effective Positional Encoding for Transformers", section 3.2,
    equation 3:

        A[i, j] = q_i . k_j / sqrt(D) + R[i - j]

    R is one scalar per offset, unclipped and without bins, for queries and keys alike in encoder,
    decoder and cross-attention, where i counts target and j source positions. Unshared by default:
    sharing hurts (table 9). Where we differ: the paper prints sqrt(d); sqrt(D) is what it builds on
    (see ``--attention-scale``).
    """

    name: ClassVar[str] = "diet-rel"
    default_sharing: ClassVar[Optional[str]] = "none"

    def attention_bias(self, shape: AttentionShape) -> AttentionBias:
        return DietRelBias(shape, self.sharing or "none")
