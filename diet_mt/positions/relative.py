"""From one number per distance to one per query and key."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from .base import AttentionBias
from .spans import Span, as_tensor, extremes, tokens_in


def toeplitz(window: Tensor, query_len: int) -> Tensor:
    """(..., T + S - 1) -> (..., T, S) with ``out[i, j] = window[S - 1 + i - j]``.

    Row i is a part of the window that begins at i, reversed: one copy, and no table of indices.
    """
    return window.unfold(-1, window.size(-1) - query_len + 1, 1).flip(-1)


class RelativeBias(AttentionBias):
    """A bias that is the same wherever query and key have the same distance i - j."""

    @abstractmethod
    def by_distance(self, lowest: int, highest: int) -> Tensor:
        """Values of the distances ``lowest .. highest``, both included: (L|1, H|1, count)."""

    def forward(self, queries: Span, keys: Span) -> Tensor:
        if isinstance(queries, range) and isinstance(keys, range):
            return toeplitz(self.by_distance(*extremes(queries, keys)), tokens_in(queries))
        # All distances that there can be: to ask for the largest one would wait for a GPU.
        lowest = 1 - self.shape.max_keys
        window = self.by_distance(lowest, self.shape.max_queries - 1)  # (L|1, H|1, count)
        device = window.device
        column = as_tensor(queries, device)[:, None] - as_tensor(keys, device) - lowest  # (T, S)
        found: Tensor = window.index_select(-1, column.flatten()).unflatten(-1, column.shape)
        return found


def distances(lowest: int, highest: int, device: torch.device) -> Tensor:
    """``lowest .. highest``, both included, as integers."""
    return torch.arange(lowest, highest + 1, device=device)
