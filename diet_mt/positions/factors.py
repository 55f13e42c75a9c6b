"""Biases that are the product of two low-rank factors, which is not stored for long sentences."""

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
from .position_ids import REFUSE, PositionRange, num_positions, read_table
from .terms import PositionTerms, Row, select_row

# Number of queries, and of keys, from which on the factors are appended to them. Below, the product
# is cheaper than the wider attention (``diet-mt bench memory`` measures the memory of both).
APPEND_FROM = 2048
STORED = 1 << 26  # most entries of a stored product: 256 MiB in float32


@dataclass(frozen=True, kw_only=True)
class FactorTerms(PositionTerms):
    """Factors that are appended to queries and keys in place of a T x S bias.

    The logits are the product of q' = [q, F_Q] and k' = [k, F_K], the same sums as with the bias;
    in a fused kernel, memory is linear in the length.

    Attributes:
        query_factor: F_Q, (H|1, T, R).
        key_factor: F_K, (H|1, S, R).
    """

    query_factor: Tensor
    key_factor: Tensor

    def step(self, row: Row, keys: int) -> PositionTerms:
        query_factor = select_row(self.query_factor, row, 1)
        return PositionTerms(product(query_factor, self.key_factor[:, :keys]))

    def factors(self) -> tuple[Tensor, Tensor]:
        return self.query_factor, self.key_factor


class FactorBias(AttentionBias):
    """A bias that is a product of two factors; long sentences append the factors instead.

    In a model that fairseq has prepared for inference, and that can no longer be trained, the
    product of the whole tables is computed once (Chen et al. 2021, section 3.1: "we can cache the
    computed matrix before running inference"). If it grew with the sentences, its last bits would
    depend on their order.
    """

    _stored: Tensor | None = None  # (L|1, H|1, n_T, n_S)
    _is_final = False

    @property
    def is_product(self) -> bool:
        """Whether the bias has no other summands."""
        return True

    @abstractmethod
    def factors(self, queries: PositionRange, keys: PositionRange) -> tuple[Tensor, Tensor]:
        """F_Q (L|1, H|1, T, R) of T ``queries`` and F_K (L|1, H|1, S, R) of S ``keys``."""

    def tabulate(self) -> None:
        """Stores the factors of all positions, (L|1, H|1, n_T, R) and (L|1, H|1, n_S, R)."""
        both = self.factors(range(self.shape.max_queries), range(self.shape.max_keys))
        vars(self)["factors"] = lambda *at: [
            read_table(table, rows, REFUSE, dim=2) for table, rows in zip(both, at, strict=True)
        ]

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
            both = self.factors(queries, keys)
            layers = max(map(len, both))
            pairs = zip(*(x.expand(layers, -1, -1, -1).unbind(0) for x in both), strict=True)
            return [FactorTerms(query_factor=query, key_factor=key) for query, key in pairs]
        return super().terms(queries, keys)
