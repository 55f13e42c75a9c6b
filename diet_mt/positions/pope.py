"""PoPE: words give queries and keys their lengths, positions the angles between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import (
    DECODER,
    ENCODER,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
    at_least_float32,
)
from .frequencies import Scaling
from .layer import LayerPositions, Row, at_row
from .spans import Span, as_tensor


def polar(x: Tensor, direction: Tensor) -> Tensor:
    """Each column of ``x`` (B, H, T, D) as a point at distance softplus(x) in a ``direction`` (2,
    H|1, T, D), the cosine and the sine of its angle: (B, H, T, 2D).

    In float32 or better, returned in the precision of ``x``.
    """
    length = F.softplus(x.to(at_least_float32(x.dtype)))
    cos, sin = direction.to(length.dtype)
    return torch.cat([length * cos, length * sin], dim=-1).to(x.dtype)


def directions(angle: Tensor) -> Tensor:
    """Cosines and sines, (2, ...)."""
    return torch.stack([angle.cos(), angle.sin()])


@dataclass(frozen=True)
class PopeLayer(LayerPositions):
    """``of_queries`` (2, 1, T, D) and ``of_keys`` (2, H|1, T, D): the directions of queries and new
    keys, which stand at the same positions, before keys are cached.
    """

    of_queries: Optional[Tensor] = None
    of_keys: Optional[Tensor] = None

    def step(self, row: Row, keys: int) -> PopeLayer:
        assert self.of_queries is not None
        assert self.of_keys is not None
        own, new = (at_row(each, row, 2) for each in (self.of_queries, self.of_keys))
        return replace(self, of_queries=own, of_keys=new)

    def queries(self, q: Tensor) -> Tensor:
        assert self.of_queries is not None
        return polar(q, self.of_queries)

    def keys(self, k: Tensor, padding: Optional[Tensor]) -> Tensor:
        assert self.of_keys is not None
        return polar(k, self.of_keys)


class Phases(nn.Module):
    """delta of one layer, (H|1, D), which starts at 0."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.phase = nn.Parameter(torch.zeros(heads, head_dim))


class PopePositions(AttentionPositions):
    """Angles of all layers: position times 10000^(-c/D) for column c, and for keys delta_c more."""

    limited: ClassVar[bool] = False

    def __init__(self, shape: AttentionShape, sharing: Optional[str]) -> None:
        super().__init__(shape, sharing, lambda heads: Phases(heads, shape.head_dim))

    def parts(self, queries: Span, keys: Span) -> List[LayerPositions]:
        device = self.like.device
        # Of twice as many columns: there a pair is what a column is here.
        speed = Scaling().speeds(2 * self.shape.head_dim, device)  # (D,)
        angle = as_tensor(queries, device)[:, None] * speed  # (T, D) in float64
        phases = self.stacked("phase").clamp(-2 * math.pi, 0)  # (L|1, H|1, D)
        of_keys = directions(angle + phases.unsqueeze(2))  # (2, L|1, H|1, T, D)
        own = directions(angle[None])
        return [PopeLayer(of_queries=own, of_keys=each) for each in of_keys.unbind(1)]


@dataclass(frozen=True)
class Pope(PositionEncoding):
    """Gopalakrishnan et al. 2025, "Decoupling the 'What' and 'Where' With Polar Coordinate
    Positional Embeddings" (arXiv:2509.10534): with mu = softplus(q_i) and nu = softplus(k_j),

        A[i, j] = sum_c mu_c nu_c cos((j - i) 10000^(-c/D) + delta_c) / sqrt(D)

    over the D columns of a head. Rotary positions turn a pair of columns by an angle to which the
    words add one of their own; here words have no angle. delta is learned for each layer and head,
    starts at 0 and is kept within -2 pi and 0, as in the package PoPE-pytorch. The paper has
    decoders only; here encoder and decoder have phases of their own. Nothing in cross-attention,
    whose positions count two different sentences.
    """

    name: ClassVar[str] = "pope"
    acts_in: ClassVar[Tuple[str, ...]] = (ENCODER, DECODER)
    default_sharing: ClassVar[Optional[str]] = "none"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return PopePositions(shape, self.sharing)
