"""Biases that are the product of two low-rank factors, never written out for long sentences."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from torch import Tensor

from ..nn.precision import product
from .base import AttentionBias
from .position_ids import PositionRange, num_positions
from .terms import PositionTerms, Row, select_row

# Queries and keys from which on the factors are appended to queries and keys. Below, the product is
# cheaper than the wider attention (``diet-mt bench memory``: the memory of both).
APPEND_FROM = 2048


@dataclass(frozen=True, kw_only=True)
class FactorTerms(PositionTerms):
    """In place of a T x S bias: q' = [q, F_Q], k' = [k, F_K], whose product is the logit.

    The logits are the same, sum by sum; with a fused kernel memory is linear in the length.

    ``query_factor`` (H|1, T, R); ``key_factor`` (H|1, S, R).
    """

    query_factor: Tensor
    key_factor: Tensor

    def step(self, row: Row, keys: int) -> PositionTerms:
        query_factor = select_row(self.query_factor, row, 1)
        return PositionTerms(product(query_factor, self.key_factor[:, :keys]))

    def factors(self) -> tuple[Tensor, Tensor]:
        return self.query_factor, self.key_factor


def append_factors(query: Tensor, key: Tensor) -> list[PositionTerms]:
    """The factors of :func:`product` -> terms of each layer, or one for all."""
    layers = max(query.size(0), key.size(0))
    query, key = query.expand(layers, *query.shape[1:]), key.expand(layers, *key.shape[1:])
    pairs = zip(query.unbind(0), key.unbind(0), strict=True)
    return [FactorTerms(query_factor=one, key_factor=other) for one, other in pairs]


class FactorBias(AttentionBias):
    """A bias that is a product of two factors, which long sentences append instead."""

    @property
    def is_product(self) -> bool:
        """Whether the bias has no other summands."""
        return True

    @abstractmethod
    def factors(self, queries: PositionRange, keys: PositionRange) -> tuple[Tensor, Tensor]:
        """For T ``queries`` (L|1, H|1, T, R), for S ``keys`` (L|1, H|1, S, R)."""

    def forward(self, queries: PositionRange, keys: PositionRange) -> Tensor:
        return product(*self.factors(queries, keys))

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        if self.is_product and min(num_positions(queries), num_positions(keys)) >= APPEND_FROM:
            return append_factors(*self.factors(queries, keys))
        return super().terms(queries, keys)
