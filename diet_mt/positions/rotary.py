"""Rotary positions: queries and keys are turned by an angle that grows with their position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, List, Optional, Tuple

import torch
from torch import Tensor

from ..errors import UserError
from .base import (
    CROSS,
    DECODER,
    ENCODER,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
    at_least_float32,
)
from .layer import LayerPositions

BASE = 10000.0


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turns columns (0, 1), (2, 3), ... of ``x`` (B, H, T, D) by the angles of (T, D/2) tables.

    In float32 or better, returned in the precision of ``x``.
    """
    kind = at_least_float32(x.dtype)
    # A pair of columns as one complex number: turning it is one multiplication.
    pairs = torch.view_as_complex(x.to(kind).unflatten(-1, (-1, 2)))  # (B, H, T, D/2)
    turned = pairs * torch.complex(cos.to(kind), sin.to(kind))
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


@dataclass(frozen=True)
class RotaryLayer(LayerPositions):
    """Turns queries and new keys, which stand at the same positions, before keys are cached.

    ``cos`` and ``sin``: (T, D/2) of these positions.
    """

    cos: Optional[Tensor] = None
    sin: Optional[Tensor] = None

    def step(self, row: int, keys: int) -> RotaryLayer:
        assert self.cos is not None
        assert self.sin is not None
        return replace(self, cos=self.cos[row : row + 1], sin=self.sin[row : row + 1])

    def queries(self, q: Tensor) -> Tensor:
        assert self.cos is not None
        assert self.sin is not None
        return rotate(q, self.cos, self.sin)

    def keys(self, k: Tensor, padding: Optional[Tensor]) -> Tensor:
        return self.queries(k)


class RotaryPositions(AttentionPositions):
    """The angles of all layers: position times 10000^(-2c/D) for the pair c of columns."""

    limited: ClassVar[bool] = False

    def __init__(self, shape: AttentionShape) -> None:
        super().__init__(shape)
        if shape.head_dim % 2:
            raise UserError(
                "rotary positions turn pairs of columns, and a head size of "
                f"{shape.head_dim} is odd; change --*-embed-dim or --*-attention-heads"
            )
        # Where the model is. The angles themselves are no buffer: half precision would round them.
        self.register_buffer("anchor", torch.empty(0), persistent=False)

    def for_layers(self, query_start: int, query_len: int, key_len: int) -> List[LayerPositions]:
        size, device = self.shape.head_dim, self.get_buffer("anchor").device
        speed = BASE ** (-torch.arange(0, size, 2, device=device).double() / size)  # (D/2,)
        position = torch.arange(query_start, query_start + query_len, device=device)
        angle = position[:, None] * speed  # (T, D/2) in float64
        return self.each([RotaryLayer(cos=angle.cos(), sin=angle.sin())])


@dataclass(frozen=True)
class Rotary(PositionEncoding):
    """Su et al. 2021, "RoFormer" (arXiv:2104.09864), section 3.2.2, equations 14 to 16: q_i and
    k_j of self-attention are turned, so that their product depends on i - j; values are not.

    Pairs are neighbouring columns, as printed there and in equation 34. Encoder and decoder have
    the same. Nothing in cross-attention, whose positions count two different sentences, and no
    parameters.
    """

    name: ClassVar[str] = "rotary"
    acts_in: ClassVar[Tuple[str, ...]] = (ENCODER, DECODER)

    def attention_positions(self, shape: AttentionShape) -> Optional[AttentionPositions]:
        return None if shape.kind == CROSS else RotaryPositions(shape)
