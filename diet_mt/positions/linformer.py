"""Linformer and DIET-ABS-LIN: the encoder's keys and values projected to k mixtures of tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from .absolute import Learned, LearnedInput
from .base import (
    ENCODER,
    AttentionPositions,
    AttentionShape,
    InputPositions,
    PositionEncoding,
    Table,
    normal,
)
from .diet import DietAbs, DietAbsBias
from .options import option
from .position_ids import PositionRange
from .terms import PositionTerms


@dataclass(frozen=True, kw_only=True)
class LinformerTerms(PositionTerms):
    """``of_keys`` E^T and ``of_values`` F^T, (H|1, S, k) each; ``bias`` (H|1, T, k), if any, is
    that of the k mixed keys.
    """

    mixes_keys = True

    of_keys: Tensor
    of_values: Tensor

    def keys(self, k: Tensor, padding: Tensor | None = None) -> Tensor:
        return self._mix(self.of_keys, k, padding)

    def values(self, v: Tensor, padding: Tensor | None = None) -> Tensor:
        return self._mix(self.of_values, v, padding)

    @staticmethod
    def _mix(shares: Tensor, x: Tensor, padding: Tensor | None) -> Tensor:
        """(B, H, S, D) -> (B, H, k, D).

        Padding is set to 0 first: its projections are not 0, and mixtures cannot be masked.
        """
        if padding is not None:
            x = x.masked_fill(padding[:, None, :, None], 0.0)
        shares = shares.to(x.dtype)
        if shares.size(0) == 1:
            return torch.einsum("sk,bhsd->bhkd", shares[0], x)
        return torch.einsum("hsk,bhsd->bhkd", shares, x)


class LinformerPositions(AttentionPositions):
    """E and F of all layers of an encoder; of one layer ``of_keys`` E^T and ``of_values`` F^T,
    (H|1, n, k) each, initially normal with variance 1/k (Wang et al. 2020, theorem 2).
    """

    def __init__(self, shape: AttentionShape, sharing: str | None, projected: int) -> None:
        def table(heads: int) -> Table:
            size, std = (heads, shape.max_keys, projected), projected**-0.5
            return Table(of_keys=normal(size, std), of_values=normal(size, std))

        super().__init__(shape, sharing, table)

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        stacks = (self.stacked(name, keys) for name in ("of_keys", "of_values"))
        return [LinformerTerms(of_keys=e, of_values=f) for e, f in zip(*stacks, strict=True)]


class DietAbsLinPositions(LinformerPositions):
    """E and F of each layer, and (P_Q P_K^T)[i, j] for the k mixed keys."""

    def __init__(
        self, shape: AttentionShape, sharing: str | None, projected: int, rank: int
    ) -> None:
        super().__init__(shape, "head-wise", projected)
        self.mixed = DietAbsBias(replace(shape, max_keys=projected), sharing, rank)

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        # Written out at every length: mixed keys are few, and terms have either bias or factors.
        biases = self.mixed(queries, range(self.mixed.shape.max_keys))  # (L|1, H|1, T, k)
        pairs = zip(super().terms(queries, keys), self.per_layer(list(biases)), strict=True)
        return [replace(terms, bias=bias) for terms, bias in pairs]


def projected_option() -> Any:
    """k. Chen et al. 2021 have 32 for GLUE (section 4.1), Wang et al. 128 and 256 at 512 tokens."""
    return option("--linformer-k", 32, "keys and values that the encoder mixes a sentence down to")


@dataclass(frozen=True)
class Linformer(PositionEncoding):
    """Wang et al. 2020, "Linformer: Self-Attention with Linear Complexity" (arXiv:2006.04768),
    equation 7, in the encoder:

        A[i, j] = q_i . (E K)_j / sqrt(D),   values F V,   j = 1 .. k

    with learned vectors per position at the input of both stacks, as Chen et al. 2021 run it (table
    2, "input"). Decoder and cross-attention are plain: mixed keys cannot be masked causally. E and
    F are one pair per layer for all its heads by default (the paper's "headwise sharing");
    ``--linformer-k`` is k.
    """

    name = "linformer"
    acts_in = (ENCODER,)
    default_sharing = "head-wise"
    mixes_keys = True
    color = "#17becf"
    family = "projected"

    projected: int = projected_option()

    @property
    def own_input(self) -> str:
        return Learned.name

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return LearnedInput(max_positions, embed_dim)

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return LinformerPositions(shape, self.sharing, self.projected)


@dataclass(frozen=True)
class DietAbsLin(DietAbs):
    """Chen et al. 2021, "A Simple and Effective Positional Encoding for Transformers"
    (arXiv:2104.08698), section 3.4, equation 4, in the encoder:

        A[i, j] = q_i . (E K)_j / sqrt(D) + (P_Q P_K^T)[i, j],   j = 1 .. k

    P_Q has a row for each position, P_K one for each of the k mixed keys (``--linformer-k``).
    Decoder and cross-attention have DIET-ABS as it is. ``--position-sharing`` and
    ``--position-rank`` apply to P_Q and P_K, as in DIET-ABS; E and F are one pair per layer.

    Where we differ: the equation mixes the inputs, ((E X) W_K)_j, and ours, as Linformer, the keys,
    E (X W_K): equal but for the bias of the projection, which a mixed key here has times the sum
    of its row of E, there once. P_Q and P_K are printed with d columns, the model's width, which
    ``--position-rank`` gives; here their rank is the head size, as in DIET-ABS. The 32 and 256 that
    tables 2 and 3 call d_p are k (section 4.1). The print omits the values, which Linformer mixes
    by F.
    """

    name = "diet-abs-lin"
    sentence_preset: ClassVar[dict[str, Any]] = {}
    mixes_keys = True
    color = "#1f4e79"
    family = "projected"

    projected: int = projected_option()

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        if shape.kind != ENCODER:
            return super().in_attention(shape)
        rank = self.rank or shape.head_dim
        return DietAbsLinPositions(shape, self.sharing, self.projected, rank)
