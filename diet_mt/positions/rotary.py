"""Rotary positions: queries and keys are turned by an angle that grows with their position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Iterator, List, Optional, Tuple

import torch
from torch import Tensor

from ..errors import UserError
from .base import (
    DECODER,
    ENCODER,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
    at_least_float32,
)
from .frequencies import SCALINGS, Scaling
from .layer import LayerPositions, Row, at_row
from .options import option
from .spans import Span, as_tensor


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Turns columns (0, 1), (2, 3), ... of ``x`` (B, H, T, D) by the angles of ``turn`` (T, D/2),
    complex numbers.

    In the precision of ``turn``, returned in that of ``x``.
    """
    if torch.compiler.is_compiling():  # which fuses no complex numbers
        cos, sin = torch.view_as_real(turn).unbind(-1)
        left, right = x.to(cos.dtype).unflatten(-1, (-1, 2)).unbind(-1)
        turned = left * cos - right * sin, left * sin + right * cos
        return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)
    # A pair of columns as one complex number: turning it is one multiplication.
    pairs = torch.view_as_complex(x.to(turn.dtype.to_real()).unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


@dataclass(frozen=True)
class RotaryLayer(LayerPositions):
    """Turns queries and new keys, which stand at the same positions, before keys are cached.

    ``turn``: (T, D/2) of these positions, complex.
    """

    turn: Optional[Tensor] = None

    def step(self, row: Row, keys: int) -> RotaryLayer:
        assert self.turn is not None
        return replace(self, turn=at_row(self.turn, row, 0))

    def queries(self, q: Tensor) -> Tensor:
        assert self.turn is not None
        return rotate(q, self.turn)

    def keys(self, k: Tensor, padding: Optional[Tensor]) -> Tensor:
        return self.queries(k)


class RotaryPositions(AttentionPositions):
    """The angles of all layers: position times 10000^(-2c/D) for the pair c of columns, or what
    ``scaling`` makes of it.
    """

    limited: ClassVar[bool] = False

    def __init__(self, shape: AttentionShape, scaling: Scaling) -> None:
        super().__init__(shape)
        self.scaling = scaling
        if shape.head_dim % 2:
            raise UserError(
                "rotary positions turn pairs of columns, and a head size of "
                f"{shape.head_dim} is odd; change --*-embed-dim or --*-attention-heads"
            )

    def parts(self, queries: Span, keys: Span) -> List[LayerPositions]:
        # Computed in float64, then rounded to the model's precision, or float32 where that is less.
        device = self.like.device
        speed = self.scaling.speeds(self.shape.head_dim, device)  # (D/2,)
        angle = as_tensor(queries, device)[:, None] * speed
        length = torch.full_like(angle, self.scaling.attention_factor())
        double = at_least_float32(self.like.dtype) == torch.float64
        precision = torch.complex128 if double else torch.complex64
        return [RotaryLayer(turn=torch.polar(length, angle).to(precision))]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.scaling}"


@dataclass(frozen=True)
class Rotary(PositionEncoding):
    """Su et al. 2021, "RoFormer" (arXiv:2104.09864), section 3.2.2, equations 14 to 16: q_i and
    k_j of self-attention are turned, so that their product depends on i - j; values are not.

    Pairs are neighbouring columns, as printed there and in equation 34. Encoder and decoder have
    the same. Nothing in cross-attention, whose positions count two different sentences, and no
    parameters.

    For sentences longer than those of training, ``--position-scaling`` slows the turns
    (``frequencies.py``) by ``--position-scaling-factor``: ``linear``, ``ntk`` or ``yarn``, which
    also asks for ``--position-trained-length``. Nothing that is learned means anything else then,
    so a model trained without goes on with it: decoded with ``--model-overrides``, or trained.
    """

    name: ClassVar[str] = "rotary"
    acts_in: ClassVar[Tuple[str, ...]] = (ENCODER, DECODER)

    scaling: Optional[str] = option(
        "--position-scaling",
        None,
        "how positions turn more slowly, for sentences longer than in training",
        kind=str,
        choices=SCALINGS,
    )
    scaling_factor: Optional[float] = option(
        "--position-scaling-factor",
        None,
        "how many times as long sentences become, for --position-scaling",
        kind=float,
    )
    trained_length: Optional[int] = option(
        "--position-trained-length",
        None,
        "tokens in the longest sentences of training, for --position-scaling yarn",
        kind=int,
    )

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        flag = "--position-scaling"
        if self.scaling is None:
            if (self.scaling_factor, self.trained_length) != (None, None):
                yield f"{flag}-factor and --position-trained-length belong to {flag}"
        elif self.scaling in SCALINGS:
            if self.scaling_factor is None:
                yield f"{flag} {self.scaling}: also give {flag}-factor"
            if self.scaling == "yarn" and self.trained_length is None:
                yield f"{flag} yarn: also give --position-trained-length"
            elif self.scaling != "yarn" and self.trained_length is not None:
                yield f"--position-trained-length: only for {flag} yarn"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        scaling = Scaling(self.scaling, self.scaling_factor or 1.0, self.trained_length or 1)
        return RotaryPositions(shape, scaling)

    def continues(self) -> Iterator[str]:
        yield from super().continues()
        yield self.name
