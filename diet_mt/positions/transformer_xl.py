"""Transformer-XL: projected sinusoids of the distance, and two global query vectors."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..nn.precision import at_least_float32, no_autocast
from .base import AttentionPositions, AttentionShape, PositionEncoding, Table, normal
from .position_ids import frequencies
from .relative import ClippedPositions, ClippedTerms
from .terms import PositionTerms


@dataclass(frozen=True, kw_only=True)
class TransformerXlTerms(ClippedTerms):
    """R W_R of all distances, ``of_keys``; u, ``content``, and v, ``position``, (H, D) each."""

    content: Tensor
    position: Tensor

    def queries(self, q: Tensor) -> Tensor:
        return q + self.content[:, None].to(q.dtype)

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Tensor:
        moved = q + (self.position - self.content)[:, None].to(q.dtype)  # q_i + v
        return super().query_bias(moved, keys, scale)


class TransformerXlPositions(ClippedPositions):
    """u and v, (H, D) each, for all layers; a layer has W_R, ``key`` (H|1, E, D)."""

    clip = sys.maxsize

    def __init__(self, shape: AttentionShape, sharing: str | None) -> None:
        def table(heads: int) -> Table:
            return Table(key=normal((heads, shape.embed_dim, shape.head_dim)))

        super().__init__(shape, sharing, table)
        self.content = nn.Parameter(normal((shape.heads, shape.head_dim)))
        self.position = nn.Parameter(normal((shape.heads, shape.head_dim)))

    def terms_up_to(self, furthest: int, **queries: Any) -> list[PositionTerms]:
        device, width = self.like.device, self.shape.embed_dim
        dtype = at_least_float32(self.like.dtype)
        distance = torch.arange(furthest, -furthest - 1, -1, device=device)  # i - j
        angle = distance[:, None] * frequencies(width, device)  # in float64
        sinusoids = torch.cat([angle.sin(), angle.cos()], dim=1)[:, :width].to(dtype)  # (2c+1, E)
        with no_autocast(device):
            of_keys = sinusoids @ self.stacked("key")  # (L|1, H|1, 2c+1, D)
        queries |= {"content": self.content.to(dtype), "position": self.position.to(dtype)}
        return [TransformerXlTerms(of_keys=keys, **queries) for keys in of_keys.unbind(0)]


@dataclass(frozen=True)
class TransformerXl(PositionEncoding):
    """Transformer-XL, also XLNet (Dai et al. 2019, arXiv:1901.02860, section 3.3, A^rel):

        A[i, j] = ((q_i + u) . k_j + (q_i + v) . R[i - j] W_R) / sqrt(D)

    R[d] = [sin(d w); cos(d w)], w_c = 10000^(-2c/E). W_R is learned per head and layer, u and v per
    head for all layers, as in the paper and by default in its code (kimiyoung/transformer-xl);
    XLNet's u and v differ by layer. Where we differ: the paper has decoders only, with a memory of
    earlier segments. Here there is no memory; encoder (in both directions, as in XLNet), decoder
    and cross-attention (i in the target, j in the source) have separate parameters.
    """

    name = "transformer-xl"
    default_sharing = "none"
    color = "#8c564b"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return TransformerXlPositions(shape, self.sharing)
