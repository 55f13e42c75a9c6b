"""Linformer and DIET-ABS-LIN: keys and values of the encoder, projected to k mixtures of tokens."""

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
    """Projections E^T, ``of_keys``, and F^T, ``of_values``: (H|1, S, k) each.

    ``bias``: (H|1, T, k), for the k mixed keys, or None.
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
        """Tokens (B, H, S, D) -> mixtures (B, H, k, D).

        Projected padding is not 0, and masks cannot remove it from mixtures; so it is set to 0.
        """
        if padding is not None:
            x = x.masked_fill(padding[:, None, :, None], 0.0)
        shares = shares.to(x.dtype)
        if shares.size(0) == 1:
            return torch.einsum("sk,bhsd->bhkd", shares[0], x)
        return torch.einsum("hsk,bhsd->bhkd", shares, x)


class LinformerPositions(AttentionPositions):
    """E and F of all layers of an encoder.

    A layer has E^T, ``of_keys``, and F^T, ``of_values``: (H|1, n, k) each, initially normal with
    variance 1/k (Wang et al. 2020, theorem 2).
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
    """E and F of all layers of an encoder, and the bias (P_Q P_K^T)[i, j] of k mixed keys."""

    def __init__(
        self, shape: AttentionShape, sharing: str | None, projected: int, rank: int
    ) -> None:
        super().__init__(shape, "head-wise", projected)
        self.mixed = DietAbsBias(replace(shape, max_keys=projected), sharing, rank)

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        # A bias at every length: mixed keys are few, and LinformerTerms have no factors.
        biases = self.mixed(queries, range(self.mixed.shape.max_keys))  # (L|1, H|1, T, k)
        pairs = zip(super().terms(queries, keys), self.per_layer(list(biases)), strict=True)
        return [replace(terms, bias=bias) for terms, bias in pairs]


def projected_option() -> Any:
    """k: 32 for GLUE in Chen et al. (section 4.1), 128 and 256 for 512 tokens in Wang et al."""
    return option("--linformer-k", 32, "length to which the encoder projects keys and values")


@dataclass(frozen=True)
class Linformer(PositionEncoding):
    """Linformer: mixed keys and values (Wang et al. 2020, arXiv:2006.04768, eq. 7) in the encoder:

        A[i, j] = q_i . (E K)_j / sqrt(D),   values F V,   j = 1 .. k

    k is ``--linformer-k``. Both stacks have learned positions at the input, as in Chen et al. 2021
    (table 2, "input"). The decoder is plain, since mixed keys cannot be masked causally, and so is
    cross-attention. By default, the heads of a layer share E and F ("headwise sharing").
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
    """DIET-ABS-LIN: DIET-ABS with the mixed keys and values of Linformer in the encoder.

    Chen et al. 2021 (arXiv:2104.08698), section 3.4, equation 4:

        A[i, j] = q_i . (E K)_j / sqrt(D) + (P_Q P_K^T)[i, j],   j = 1 .. k

    P_Q has a row per position, P_K a row per mixed key; k is ``--linformer-k``. Decoder and
    cross-attention have DIET-ABS. ``--position-sharing`` and ``--position-rank`` apply to P_Q and
    P_K, as in DIET-ABS; each layer has one pair E and F.

    Where we differ: the equation mixes the inputs, ((E X) W_K)_j; here, as in Linformer, the keys
    are mixed, E (X W_K). Only the projection's bias differs: here a mixed key contains it times the
    sum of its row of E, there once. In the paper, P_Q and P_K have d columns, the model width; here
    the default rank is the head size (``--position-rank``), as in DIET-ABS. The 32 and 256 that
    tables 2 and 3 call d_p are k (section 4.1). The values, mixed by F as in Linformer, are not in
    the equation.
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
