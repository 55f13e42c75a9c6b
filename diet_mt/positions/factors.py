"""Biases that are the product of two low-rank factors, and long sentences without their table."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, FrozenSet, List, Optional, Tuple

import torch
from torch import Tensor

from .base import AttentionBias, no_autocast
from .term import Term, Terms

# Queries and keys from which on the factors are appended to queries and keys. Below, the product is
# cheaper than the wider attention (``cli/long_sequences.py`` measures both).
APPEND_FROM = 2048


@dataclass(frozen=True)
class FactorTerm(Term):
    """Instead of a T x S table: q' = [q, F_Q, 1], k' = [k, F_K, m], whose product is the logit.

    The scores are the same, sum by sum; memory is linear in the length where the kernel is fused. m
    is the padding mask, a large negative number instead of -inf, whose product with 0 has no
    gradient.

    ``query_factor`` (H|1, T, R); ``key_factor`` (H|1, S, R).
    """

    by_query: ClassVar[FrozenSet[str]] = frozenset({"query_factor"})
    by_key: ClassVar[FrozenSet[str]] = frozenset({"key_factor"})

    query_factor: Optional[Tensor] = None
    key_factor: Optional[Tensor] = None

    def mask(self) -> Optional[Tensor]:
        return None  # a column of the keys

    def columns(self, k: Tensor) -> List[Tuple[Tensor, Tensor]]:
        assert self.query_factor is not None
        assert self.key_factor is not None
        pairs = [*super().columns(k), (self.query_factor, self.key_factor)]
        if self.offsets is not None:
            closed = self.offsets.to(k.dtype).clamp(min=torch.finfo(k.dtype).min / 4)
            pairs.append((k.new_ones((1, 1, 1, 1)), closed.transpose(-1, -2)))
        return pairs


class FactorBias(AttentionBias):
    """(F_Q F_K^T)[i, j] for all layers: (L|1, H|1, T, S)."""

    @abstractmethod
    def factors(self, query_start: int, query_len: int, key_len: int) -> Tuple[Tensor, Tensor]:
        """F_Q (L|1, H|1, T, R) and F_K (L|1, H|1, S, R)."""

    def forward(self, query_start: int, query_len: int, key_len: int) -> Tensor:
        self.check_range(query_start, query_len, key_len)
        query, key = self.factors(query_start, query_len, key_len)
        # Summed in float32 also under autocast or in a half-precision model: a rank of 64 or more
        # adds up rounding.
        with no_autocast(query.device):
            return query @ key.transpose(-1, -2)  # (L|1, H|1, T, S)

    def terms(self, query_start: int, query_len: int, key_len: int) -> Terms:
        if min(query_len, key_len) < APPEND_FROM:
            return super().terms(query_start, query_len, key_len)
        self.check_range(query_start, query_len, key_len)
        query, key = self.factors(query_start, query_len, key_len)
        return Terms(kind=FactorTerm, tensors={"query_factor": query, "key_factor": key})
