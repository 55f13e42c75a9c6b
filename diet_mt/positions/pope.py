"""PoPE: queries and keys in polar coordinates, radius by content and angle by position."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn.precision import at_least_float32
from .base import SELF_ATTENTION, AttentionPositions, AttentionShape, PositionEncoding, Table
from .position_ids import PositionRange, as_tensor, frequencies
from .terms import PositionTerms, Row, select_row


def polar(x: Tensor, direction: Tensor) -> Tensor:
    """Columns of ``x`` (B, H, T, D) as points of radius softplus(x): (B, H, T, 2D).

    ``direction``: (2, H|1, T, D), the cosine and sine of the angle of each point. Computed in
    float32 or better, returned in the precision of ``x``.
    """
    length = F.softplus(x.to(at_least_float32(x.dtype)))
    cos, sin = direction.to(length.dtype)
    return torch.cat([length * cos, length * sin], dim=-1).to(x.dtype)


def directions(angle: Tensor) -> Tensor:
    """Cosines and sines of angles (...): (2, ...)."""
    return torch.stack([angle.cos(), angle.sin()])


@dataclass(frozen=True, kw_only=True)
class PopeTerms(PositionTerms):
    """Directions of queries and, before these are cached, of new keys at the same positions.

    ``of_queries``: (2, 1, T, D); ``of_keys``: (2, H|1, T, D).
    """

    of_queries: Tensor
    of_keys: Tensor

    def step(self, row: Row, keys: int) -> PopeTerms:
        query, key = (select_row(x, row, 2) for x in (self.of_queries, self.of_keys))
        return replace(self, of_queries=query, of_keys=key)

    def queries(self, q: Tensor) -> Tensor:
        return polar(q, self.of_queries)

    def keys(self, k: Tensor, padding: Tensor | None = None) -> Tensor:
        return polar(k, self.of_keys)


class PopePositions(AttentionPositions):
    """Angles of all layers: position times 10000^(-c/D) for column c, plus delta_c for keys.

    A layer has delta, ``phase`` (H|1, D), initially 0.
    """

    limited = False

    def __init__(self, shape: AttentionShape, sharing: str | None) -> None:
        super().__init__(
            shape, sharing, lambda heads: Table(phase=torch.zeros(heads, shape.head_dim))
        )

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        device, size = self.like.device, self.shape.head_dim
        angle = as_tensor(queries, device)[:, None] * frequencies(2 * size, device)  # (T, D)
        phases = self.stacked("phase").clamp(-2 * math.pi, 0)  # (L|1, H|1, D)
        of_keys = directions(angle + phases.unsqueeze(2))  # (2, L|1, H|1, T, D)
        of_queries = directions(angle[None])
        return [PopeTerms(of_queries=of_queries, of_keys=layer) for layer in of_keys.unbind(1)]

    def tabulate(self) -> None:
        """Stores the directions of all positions, (2, H|1, n, D) in each layer."""
        stored = self.terms(range(self.shape.max_queries), range(0))
        vars(self)["terms"] = lambda queries, _: [layer.step(queries, 0) for layer in stored]


@dataclass(frozen=True)
class Pope(PositionEncoding):
    """PoPE: polar coordinates (Gopalakrishnan et al. 2025, arXiv:2509.10534).

    With mu = softplus(q_i) and nu = softplus(k_j), summed over the D columns c of a head:

        A[i, j] = sum_c mu_c nu_c cos((j - i) 10000^(-c/D) + delta_c) / sqrt(D)

    Unlike in rotary positions, where the angle of the content is added to that of the position,
    content has no angle. delta is learned per layer and head, initially 0 and clamped to
    [-2 pi, 0], as in the package PoPE-pytorch. The paper has decoders only; here encoder and
    decoder have separate phases. There are none in cross-attention, between two sentences.
    """

    name = "pope"
    acts_in = SELF_ATTENTION
    default_sharing = "none"
    color = "#9467bd"
    family = "rotation"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return PopePositions(shape, self.sharing)
