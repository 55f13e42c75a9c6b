"""Linformer: keys and values are mixed down to k of them, whatever the length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, List, Optional, Tuple

import torch
from torch import Tensor, nn

from .base import ENCODER, AttentionPositions, AttentionShape, PositionEncoding
from .input import InputPositions
from .layer import LayerPositions
from .learned import Learned, LearnedInput
from .options import option
from .spans import Span

# k of Chen et al. 2021 for GLUE (section 4.1); Wang et al. take 128 and 256 for 512 tokens.
DEFAULT_K = 32


@dataclass(frozen=True)
class LinformerLayer(LayerPositions):
    """``of_keys`` E^T and ``of_values`` F^T, (H|1, S, k) each; ``bias`` (H|1, T, k), where there is
    one, is that of the k mixed keys.
    """

    mixes_keys: ClassVar[bool] = True

    of_keys: Optional[Tensor] = None
    of_values: Optional[Tensor] = None

    def keys(self, k: Tensor, padding: Optional[Tensor]) -> Tensor:
        return self._mixed(self.of_keys, k, padding)

    def values(self, v: Tensor, padding: Optional[Tensor]) -> Tensor:
        return self._mixed(self.of_values, v, padding)

    @staticmethod
    def _mixed(shares: Optional[Tensor], x: Tensor, padding: Optional[Tensor]) -> Tensor:
        """(B, H, S, D) -> (B, H, k, D).

        Padding is set to 0 first: behind the projections it is not, and once mixed it could not be
        masked.
        """
        assert shares is not None
        if padding is not None:
            x = x.masked_fill(padding[:, None, :, None], 0.0)
        shares = shares.to(x.dtype)
        if shares.size(0) == 1:
            return torch.einsum("sk,bhsd->bhkd", shares[0], x)
        return torch.einsum("hsk,bhsd->bhkd", shares, x)


class Shares(nn.Module):
    """E^T and F^T of one layer: (H|1, n, k) each, normal with variance 1/k (Wang et al. 2020,
    theorem 2).
    """

    def __init__(self, heads: int, positions: int, projected: int) -> None:
        super().__init__()
        self.of_keys = nn.Parameter(torch.empty(heads, positions, projected))
        self.of_values = nn.Parameter(torch.empty(heads, positions, projected))
        for table in self.parameters():
            nn.init.normal_(table, std=projected**-0.5)


class LinformerPositions(AttentionPositions):
    """E and F of all layers of an encoder."""

    def __init__(self, shape: AttentionShape, sharing: Optional[str], projected: int) -> None:
        super().__init__(shape, sharing, lambda heads: Shares(heads, shape.max_keys, projected))

    def parts(self, queries: Span, keys: Span) -> List[LayerPositions]:
        pairs = zip(*(self.stacked(name, keys) for name in ("of_keys", "of_values")), strict=True)
        return [LinformerLayer(None, of_keys, of_values) for of_keys, of_values in pairs]


@dataclass(frozen=True)
class Projecting(PositionEncoding):
    """The option of all encodings that mix keys and values in the encoder."""

    mixes_keys: ClassVar[bool] = True

    projected: int = option(
        "--linformer-k", DEFAULT_K, "keys and values that the encoder mixes a sentence down to"
    )


@dataclass(frozen=True)
class Linformer(Projecting):
    """Wang et al. 2020, "Linformer: Self-Attention with Linear Complexity" (arXiv:2006.04768),
    equation 7, in the encoder:

        A[i, j] = q_i . (E K)_j / sqrt(D),   values F V,   j = 1 .. k

    with learned vectors per position at the input of both stacks, as Chen et al. 2021 run it (table
    2, "input"). Decoder and cross-attention are plain: mixed keys cannot be masked causally. E and
    F are one pair per layer for all its heads by default (the paper's "headwise sharing");
    ``--linformer-k`` is k.
    """

    name: ClassVar[str] = "linformer"
    acts_in: ClassVar[Tuple[str, ...]] = (ENCODER,)
    default_sharing: ClassVar[Optional[str]] = "head-wise"

    @property
    def own_input(self) -> str:
        return Learned.name

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return LearnedInput(max_positions, embed_dim)

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return LinformerPositions(shape, self.sharing, self.projected)
