"""DIET-ABS: per head, the product of two low-rank tables of positions, added to the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Optional, Tuple

import torch
from torch import Tensor, nn

from .base import INIT_STD, AttentionPositions, AttentionShape
from .factors import FactorBias
from .ranked import Ranked
from .spans import Span


class FactorTables(nn.Module):
    """P_Q (H|1, n_T, R) and P_K (H|1, n_S, R) of one layer."""

    def __init__(self, heads: int, rank: int, queries: int, keys: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(heads, queries, rank))
        self.key = nn.Parameter(torch.empty(heads, keys, rank))
        # Neither may start at 0, where the gradient of each, which is the other, would vanish; this
        # deviation leaves the product of rank 64 near 0.003.
        nn.init.normal_(self.query, std=INIT_STD)
        nn.init.normal_(self.key, std=INIT_STD)


class DietAbsBias(FactorBias):
    """(P_Q P_K^T)[i, j] for all layers: (L|1, H|1, T, S)."""

    def __init__(self, shape: AttentionShape, sharing: Optional[str], rank: int) -> None:
        super().__init__(
            shape,
            sharing,
            lambda heads: FactorTables(heads, rank, shape.max_queries, shape.max_keys),
        )

    def factors(self, queries: Span, keys: Span) -> Tuple[Tensor, Tensor]:
        """P_Q (L|1, H|1, T, R) and P_K (L|1, H|1, S, R)."""
        return self.stacked("query", queries), self.stacked("key", keys)


@dataclass(frozen=True)
class DietAbs(Ranked):
    """Chen et al. 2021, "A Simple and Effective Positional Encoding for Transformers"
    (arXiv:2104.08698), section 3.1, equation 1:

        A[i, j] = q_i . k_j / sqrt(D) + (P_Q P_K^T)[i, j]

    P_Q has a row for each query position, P_K one for each key position; in cross-attention these
    are target and source positions. The rank is the head size unless given (``--position-rank``).
    Shared by the layers by default (tables 6 and 9). Where we differ: sqrt(D) for the printed
    sqrt(d), as for DIET-REL.
    """

    name: ClassVar[str] = "diet-abs"
    default_sharing: ClassVar[Optional[str]] = "layer-wise"
    sentence_preset: ClassVar[Dict[str, Any]] = {"rank": 128}  # section 4.1

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return DietAbsBias(shape, self.sharing, self.rank or shape.head_dim)
