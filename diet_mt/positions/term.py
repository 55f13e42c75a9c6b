"""What an encoding does inside one layer, and how it is handed to all layers of a stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Dict, FrozenSet, List, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import Tensor

# Fused kernels ask for head sizes that are multiples of this.
_ALIGNED = 8


def too_long(length: int, limit: int) -> str:
    """Message for a sentence of ``length`` tokens where tables end at ``limit`` positions."""
    return (
        f"a sentence of {length} tokens is longer than the {limit} positions that this model was "
        "built with; train with a larger --max-source-positions or --max-target-positions, or "
        "filter such sentences"
    )


@dataclass(frozen=True)
class Term:
    """One call of one attention layer: masks, positional term and where the queries stand.

    The base adds ``offsets`` to the logits, all that a term independent of the words needs. A
    subclass adds tensors as fields and overrides what it changes; attention calls the methods in
    the order in which they stand here.

    ``offsets``: (B|1, H|1, T|1, S), masks (-inf) and bias together, or None. ``causal``: keys
    behind their query are hidden, though ``offsets`` do not say so. Queries stand from
    ``query_start`` to ``query_start + query_len - 1``; where ``query_len`` is 1, any number of rows
    of queries may stand at that one position (the beams of a sentence).

    ``query_segment`` (B, H|1, T, N) and ``key_segment`` (B, 1, S, N): their product is added to the
    logits; what the segments of query and key have to do with each other (``segments.py``).
    """

    # Fields with a dimension -2 that runs over query positions, or over all keys.
    by_query: ClassVar[FrozenSet[str]] = frozenset()
    by_key: ClassVar[FrozenSet[str]] = frozenset()

    offsets: Optional[Tensor] = None
    causal: bool = False
    query_start: int = 0
    query_len: int = 1
    query_segment: Optional[Tensor] = None
    key_segment: Optional[Tensor] = None

    def queries(self, q: Tensor) -> Tensor:
        """Projected queries (B, H, T, D) -> what meets the keys."""
        return q

    def keys(self, k: Tensor) -> Tensor:
        """Newly projected keys (B, H, S', D) -> what is cached. S' are all keys, or in a decoding
        step those of the queries' positions.
        """
        return k

    def values(self, v: Tensor) -> Tensor:
        """Newly projected values (B, H, S', D) -> what is cached."""
        return v

    def mask(self) -> Optional[Tensor]:
        """The offsets of what :meth:`keys` made."""
        return self.offsets

    def columns(self, k: Tensor) -> List[Tuple[Tensor, Tensor]]:
        """Pairs (B|1, H|1, T, R) and (B|1, H|1, S, R) to append to queries and keys ``k``, so that
        their products are added to the logits.
        """
        if self.query_segment is None or self.key_segment is None:
            return []
        return [(self.query_segment, self.key_segment)]

    def widened(self, q: Tensor, k: Tensor, scale: float) -> Tuple[Tensor, Tensor, float]:
        """Queries (B, H, T, D) and keys (B, H, S, D) with :meth:`columns` appended, and the factor
        of their product.
        """
        pairs = self.columns(k)
        if not pairs:
            return q, k, scale
        queries = [q * scale, *(of_query for of_query, _ in pairs)]
        keys = [k, *(of_key for _, of_key in pairs)]
        return _joined(queries), _joined(keys), 1.0

    def content(self, q: Tensor, key_len: int, scale: float) -> Optional[Tensor]:
        """What depends on the queries (B, H, rows, D) and is added to the logits: (B, H, rows, S),
        or None.
        """
        return None

    @property
    def mixes(self) -> bool:
        """Whether :meth:`mix` adds anything, for which the weights must be written out."""
        return False

    def mix(self, weights: Tensor) -> Optional[Tensor]:
        """What depends on the attention weights (B, H, rows, S) and is added to the output: (B, H,
        rows, D), or None.
        """
        return None


def _joined(parts: List[Tensor]) -> Tensor:
    """Parts (B|1, H|1, T, R) of the first one's B, H, T and precision, side by side, with columns
    of zeros up to a multiple of ``_ALIGNED``.
    """
    first = parts[0]
    wide = [first, *(part.to(first.dtype).expand(*first.shape[:3], -1) for part in parts[1:])]
    joined = torch.cat(wide, dim=-1)
    missing = -joined.size(-1) % _ALIGNED
    return F.pad(joined, (0, missing)) if missing else joined


@dataclass(frozen=True)
class Terms:
    """The terms of all layers of one kind of attention.

    ``bias``: (L|1, H|1, T, S), added to the logits, or None. ``kind``: the class of each layer's
    term, and ``tensors`` its own fields, each (L|1, ...).
    """

    bias: Optional[Tensor] = None
    kind: Type[Term] = Term
    tensors: Dict[str, Tensor] = field(default_factory=dict)

    def step(self, row: int, key_len: int) -> Terms:
        """What a decoding step needs of these: query ``row`` alone, and the first S keys."""
        bias = self.bias
        if bias is not None:
            bias = bias[..., row : row + 1, :key_len]
        tensors = {}
        for name, value in self.tensors.items():
            if name in self.kind.by_query:
                value = value[..., row : row + 1, :]
            elif name in self.kind.by_key:
                value = value[..., :key_len, :]
            tensors[name] = value
        return Terms(bias, self.kind, tensors)
