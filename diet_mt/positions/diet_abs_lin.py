"""DIET-ABS over the mixed keys of Linformer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, List, Optional

from .base import ENCODER, AttentionPositions, AttentionShape
from .diet_abs import DietAbsBias
from .layer import LayerPositions
from .linformer import LinformerPositions, Projecting
from .ranked import Ranked
from .spans import Span


class DietAbsLinPositions(LinformerPositions):
    """E and F of each layer, and (P_Q P_K^T)[i, j] for the k mixed keys."""

    def __init__(
        self, shape: AttentionShape, sharing: Optional[str], projected: int, rank: int
    ) -> None:
        super().__init__(shape, "head-wise", projected)
        self.mixed = DietAbsBias(replace(shape, max_keys=projected), sharing, rank)

    def parts(self, queries: Span, keys: Span) -> List[LayerPositions]:
        # At every length a table: mixed keys are few, and a part has either bias or factors.
        biases = self.mixed(queries, range(self.mixed.shape.max_keys))  # (L|1, H|1, T, k)
        pairs = zip(super().parts(queries, keys), self.each(list(biases)), strict=True)
        return [replace(layer, bias=bias) for layer, bias in pairs]


@dataclass(frozen=True)
class DietAbsLin(Projecting, Ranked):
    """Chen et al. 2021, "A Simple and Effective Positional Encoding for Transformers"
    (arXiv:2104.08698), section 3.4, equation 4, in the encoder:

        A[i, j] = q_i . (E K)_j / sqrt(D) + (P_Q P_K^T)[i, j],   j = 1 .. k

    P_Q has a row for each position, P_K one for each of the k mixed keys (``--linformer-k``).
    Decoder and cross-attention have DIET-ABS as it is. ``--position-sharing`` and
    ``--position-rank`` concern P_Q and P_K, as in DIET-ABS; E and F are one pair per layer.

    Where we differ: the equation mixes the inputs, ((E X) W_K)_j, and ours, as Linformer, the keys,
    E (X W_K): the same but for the bias of the projection, of which a mixed key here gets the sum
    of its row of E, there 1. P_Q and P_K are printed with d columns, the model's width, which
    ``--position-rank`` gives; here their rank is the head size, as in DIET-ABS. The 32 and 256 that
    tables 2 and 3 call d_p are k (section 4.1). The print has no values, which Linformer mixes by
    F.
    """

    name: ClassVar[str] = "diet-abs-lin"
    default_sharing: ClassVar[Optional[str]] = "layer-wise"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        rank = self.rank or shape.head_dim
        if shape.kind != ENCODER:
            return DietAbsBias(shape, self.sharing, rank)
        return DietAbsLinPositions(shape, self.sharing, self.projected, rank)
