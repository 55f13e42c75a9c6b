"""From one number per distance to one per query and key."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from .base import AttentionBias


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


class RelativeBias(AttentionBias):
    """A bias that is the same wherever query and key have the same distance i - j."""

    @abstractmethod
    def by_distance(self, lowest: int, highest: int) -> Tensor:
        """Values of the distances ``lowest .. highest``, both included: (L|1, H|1, count)."""

    def forward(self, query_start: int, query_len: int, key_len: int) -> Tensor:
        self.check_range(query_start, query_len, key_len)
        window = self.by_distance(query_start - key_len + 1, query_start + query_len - 1)
        return toeplitz(window, query_len)

    def between(self, queries: Tensor, keys: Tensor) -> Tensor:
        # All distances that there can be: to ask for the largest one would wait for a GPU.
        lowest = 1 - self.shape.max_keys
        window = self.by_distance(lowest, self.shape.max_queries - 1)  # (L|1, H|1, count)
        column = queries[:, None] - keys - lowest  # (T, S)
        found: Tensor = window.index_select(-1, column.flatten()).unflatten(-1, column.shape)
        return found


def distances(lowest: int, highest: int, device: torch.device) -> Tensor:
    """``lowest .. highest``, both included, as integers."""
    return torch.arange(lowest, highest + 1, device=device)
