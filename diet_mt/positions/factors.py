"""Biases that are the product of two low-rank factors, never written out for long sentences."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..nn.compiled import is_exporting
from ..nn.precision import product
from .base import AttentionBias
from .position_ids import PositionRange, num_positions
from .terms import PositionTerms, Row, select_row

# Queries and keys from which on the factors are appended to queries and keys. Below, the product is
# cheaper than the wider attention (``diet-mt bench memory``: the memory of both).
APPEND_FROM = 2048
STORED = 1 << 26  # entries of a stored product, at most: 256 MiB


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
    """A bias that is a product of two factors, which long sentences append instead.

    A model that fairseq has prepared for inference, and can no longer train, computes the product
    of its whole tables once (Chen et al. 2021, section 3.1: "we can cache the computed matrix
    before running inference"). One that grows would depend on the order of the sentences, in its
    last bits.
    """

    _stored: Tensor | None = None  # (L|1, H|1, n_T, n_S)
    _is_final = False

    @property
    def is_product(self) -> bool:
        """Whether the bias has no other summands."""
        return True

    @abstractmethod
    def factors(self, queries: PositionRange, keys: PositionRange) -> tuple[Tensor, Tensor]:
        """For T ``queries`` (L|1, H|1, T, R), for S ``keys`` (L|1, H|1, S, R)."""

    def forward(self, queries: PositionRange, keys: PositionRange) -> Tensor:
        ends = self.shape.max_queries, self.shape.max_keys
        size = len(self.tables()) * self.shape.heads * math.prod(ends)
        if (
            not self._is_final or torch.is_grad_enabled() or size > STORED
            or isinstance(queries, Tensor) or queries.stop > ends[0]
            or isinstance(keys, Tensor) or keys.stop > ends[1]
        ):  # fmt: skip
            return product(*self.factors(queries, keys))
        if self._stored is None:
            self._stored = product(*self.factors(range(ends[0]), range(ends[1])))
        return self._stored[..., queries.start : queries.stop, keys.start : keys.stop]

    def make_generation_fast_(self, **kwargs: Any) -> None:
        """fairseq's hook of ``prepare_for_inference_``."""
        self._is_final = True

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self._stored = None  # of another precision or device
        return super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._stored = None
        super()._load_from_state_dict(*args, **kwargs)

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        lengths = map(num_positions, (queries, keys))
        # No branch of an exported program depends on sizes.
        if self.is_product and not is_exporting() and min(lengths) >= APPEND_FROM:
            return append_factors(*self.factors(queries, keys))
        return super().terms(queries, keys)
