"""Positional terms of one layer's attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from ..nn.precision import product

# Index of a query: an integer, or a tensor (1,) on the device.
Row = int | Tensor


def select_row(x: Tensor, row: Row, dim: int) -> Tensor:
    """Entry ``row`` of ``x`` along ``dim``, as a slice of size 1."""
    return x.narrow(dim, row, 1) if isinstance(row, int) else x.index_select(dim, row)


@dataclass(frozen=True)
class PositionTerms:
    """Contribution of positions to one layer's attention, for given queries and keys.

    The base class has a bias, which suffices for encodings that do not depend on the content.
    Subclasses add tensors as fields and override methods. Attention calls the methods in the order
    of their definition here, and applies the masks.

    ``bias``: (H|1, T, S), added to the logits, or None.
    """

    # Whether keys and values are mixtures of tokens; attention then masks no padding.
    mixes_keys: ClassVar[bool] = False

    bias: Tensor | None = None

    def step(self, row: Row, keys: int) -> PositionTerms:
        """The terms of the query at index ``row`` over the first ``keys`` keys."""
        if self.bias is None:
            return self
        return replace(self, bias=select_row(self.bias, row, 1)[:, :, :keys])

    def queries(self, q: Tensor) -> Tensor:
        """Projected queries (B, H, T, D) -> queries of the logits (B, H, T, R), as wide as keys."""
        return q

    def keys(self, k: Tensor, padding: Tensor | None = None) -> Tensor:
        """Newly projected keys (B, H, S', D) -> cached keys, (B, H, S', R).

        S': all keys, or in a decoding step those at the queries' positions. ``padding``: (B, S'),
        True at padding, or None.
        """
        return k

    def values(self, v: Tensor, padding: Tensor | None = None) -> Tensor:
        """Newly projected values (B, H, S', D) -> cached values; ``padding`` as for the keys."""
        return v

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """(H|1, T, R) and (H|1, S, R), whose product is a further bias, or None."""
        return None

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Tensor | None:
        """A bias that depends on the queries (B, H, rows, R): (B, H, rows, S), or None.

        ``keys``: S; ``scale``: the factor of q k^T. The rows are the T queries or, if T is 1, any
        number of queries at the same position (the beams of a sentence).
        """
        return None

    @property
    def reads_keys(self) -> bool:
        """Whether :meth:`key_bias` returns a bias, so that a decoding step has to read the keys."""
        return False

    def key_bias(
        self, k: Tensor, scale: float, key_positions: Tensor | None = None
    ) -> Tensor | None:
        """A bias that depends on the cached keys (B, H, S, R): (B, H, T, S), or None.

        ``scale``: the factor of q k^T. ``key_positions``: (B, S), for T = 1 only, the positions of
        the keys if these are not 0 to S - 1.
        """
        return None

    def content_bias(self, q: Tensor, k: Tensor, scale: float) -> Tensor | None:
        """:meth:`query_bias` plus :meth:`key_bias`: (B, H, rows, S), or None."""
        of_queries, of_keys = self.query_bias(q, k.size(2), scale), self.key_bias(k, scale)
        if of_queries is None or of_keys is None:
            return of_keys if of_queries is None else of_queries
        return of_queries + of_keys

    def logit_bias(self, q: Tensor, k: Tensor, scale: float) -> Tensor | None:
        """Sum of all terms of the logits except ``scale`` q k^T: (B|1, H|1, T, S), or None.

        ``q``: queries (B, H, T, R); ``k``: cached keys (B, H, S, R). In the precision of ``q``.
        """
        factors = self.factors()
        total = self.content_bias(q, k, scale)
        for bias in (self.bias, None if factors is None else product(*factors)):
            if bias is not None:
                total = bias[None] if total is None else total + bias
        return None if total is None else total.to(q.dtype)

    @property
    def changes_output(self) -> bool:
        """Whether :meth:`output` returns a term, which needs the attention weights."""
        return False

    def output(self, weights: Tensor) -> Tensor | None:
        """A term (B, H, rows, D) of the output from attention weights (B, H, rows, S), or None."""
        return None


NO_TERMS = PositionTerms()
