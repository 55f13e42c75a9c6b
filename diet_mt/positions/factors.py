"""Biases that are the product of two low-rank factors, and long sentences without their table."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import List, Optional, Tuple

from torch import Tensor

from ..nn.precision import product as product
from .base import AttentionBias
from .layer import LayerPositions, Row, at_row
from .spans import Span, tokens_in

# Queries and keys from which on the factors are appended to queries and keys. Below, the product is
# cheaper than the wider attention (``diet-mt bench memory``: the memory of both).
APPEND_FROM = 2048


@dataclass(frozen=True)
class FactorPositions(LayerPositions):
    """Instead of a T x S table: q' = [q, F_Q], k' = [k, F_K], whose product is the logit.

    The logits are the same, sum by sum; memory is linear in the length where the kernel is fused.

    ``query_factor`` (H|1, T, R); ``key_factor`` (H|1, S, R).
    """

    query_factor: Optional[Tensor] = None
    key_factor: Optional[Tensor] = None

    def step(self, row: Row, keys: int) -> FactorPositions:
        query, key = self.factors()
        return replace(self, query_factor=at_row(query, row, 1), key_factor=key[:, :keys])

    def factors(self) -> Tuple[Tensor, Tensor]:
        assert self.query_factor is not None
        assert self.key_factor is not None
        return self.query_factor, self.key_factor


def appended(query: Tensor, key: Tensor) -> List[LayerPositions]:
    """The same factors as :func:`product` takes -> a part for each layer, or one for all."""
    layers = max(query.size(0), key.size(0))
    query, key = query.expand(layers, *query.shape[1:]), key.expand(layers, *key.shape[1:])
    pairs = zip(query.unbind(0), key.unbind(0), strict=True)
    return [FactorPositions(query_factor=one, key_factor=other) for one, other in pairs]


def appending_pays(query_len: int, key_len: int) -> bool:
    """Whether sentences are so long that the factors should be appended."""
    return min(query_len, key_len) >= APPEND_FROM


class FactorBias(AttentionBias):
    """A bias that is a product of two factors; long sentences append them instead."""

    @property
    def is_product(self) -> bool:
        """Whether there is nothing else in the bias."""
        return True

    @abstractmethod
    def factors(self, queries: Span, keys: Span) -> Tuple[Tensor, Tensor]:
        """For T ``queries`` (L|1, H|1, T, R), for S ``keys`` (L|1, H|1, S, R)."""

    def forward(self, queries: Span, keys: Span) -> Tensor:
        return product(*self.factors(queries, keys))

    def parts(self, queries: Span, keys: Span) -> List[LayerPositions]:
        if self.is_product and appending_pays(tokens_in(queries), tokens_in(keys)):
            return appended(*self.factors(queries, keys))
        return super().parts(queries, keys)
