"""Rotary positions: queries and keys rotated by an angle proportional to their position."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..nn.precision import at_least_float32
from ..system.errors import UserError
from .base import (
    SELF_ATTENTION,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
)
from .options import optional
from .position_ids import PositionRange, as_tensor
from .terms import PositionTerms, Row, select_row

BASE = 10000.0
SCALINGS = ("linear", "ntk", "yarn")
# YaRN, section 3.2: pairs with more rotations than this in the length of training stay as they are;
# those with fewer than one are slowed by the whole factor.
FAST, SLOW = 32.0, 1.0


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Rotates columns (0, 1), (2, 3), ... of ``x`` (B, H, T, D) by the angles of ``rotation`` (T,
    D/2), complex numbers.

    In the precision of ``rotation``, returned in that of ``x``.
    """
    if torch.compiler.is_compiling():  # which fuses no complex numbers
        cos, sin = torch.view_as_real(rotation).unbind(-1)
        left, right = x.to(cos.dtype).unflatten(-1, (-1, 2)).unbind(-1)
        rotated = left * cos - right * sin, left * sin + right * cos
        return torch.stack(rotated, dim=-1).flatten(-2).to(x.dtype)
    # A pair of columns as one complex number: one multiplication rotates it.
    pairs = torch.view_as_complex(x.to(rotation.dtype.to_real()).unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(-2).to(x.dtype)


@dataclass(frozen=True, kw_only=True)
class RotaryTerms(PositionTerms):
    """Rotation of queries and, before they are cached, of new keys at the same positions.

    ``rotation``: (T, D/2) of these positions, complex.
    """

    rotation: Tensor

    def step(self, row: Row, keys: int) -> RotaryTerms:
        return replace(self, rotation=select_row(self.rotation, row, 0))

    def queries(self, q: Tensor) -> Tensor:
        return rotate(q, self.rotation)

    def keys(self, k: Tensor, padding: Tensor | None = None) -> Tensor:
        return rotate(k, self.rotation)


class RotaryPositions(AttentionPositions):
    """Rotations of all layers, by the frequencies of ``encoding``."""

    limited = False

    def __init__(self, shape: AttentionShape, encoding: Rotary) -> None:
        super().__init__(shape)
        self.encoding = encoding
        if shape.head_dim % 2:
            raise UserError(
                "rotary positions rotate pairs of columns, and a head size of "
                f"{shape.head_dim} is odd; change --*-embed-dim or --*-attention-heads"
            )

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        # Computed in float64, then rounded to the model's precision, at least float32.
        device = self.like.device
        frequency = self.encoding.frequencies(self.shape.head_dim, device)  # (D/2,)
        angle = as_tensor(queries, device)[:, None] * frequency
        length = torch.full_like(angle, self.encoding.attention_factor())
        double = at_least_float32(self.like.dtype) == torch.float64
        precision = torch.complex128 if double else torch.complex64
        return [RotaryTerms(rotation=torch.polar(length, angle).to(precision))]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.encoding}"


@dataclass(frozen=True)
class Rotary(PositionEncoding):
    """Su et al. 2021, "RoFormer" (arXiv:2104.09864), section 3.2.2, equations 14 to 16: q_i and
    k_j of self-attention are rotated, so that their product depends on i - j; values are not.

    Pairs are neighbouring columns, as printed there and in equation 34. Encoder and decoder have
    the same. Nothing in cross-attention, whose positions count two different sentences, and no
    parameters.

    Pair c is rotated by w_c = 10000^(-2c/D) per position. For sentences longer than those of
    training, ``--position-scaling`` lowers the frequencies by ``--position-scaling-factor`` s:

    - ``linear``: w_c / s, position interpolation (Chen et al. 2023, arXiv:2306.15595, equation 4);
    - ``ntk``: (10000 s^(D/(D-2)))^(-2c/D), the first pair unchanged, the last s times slower ("NTK
      aware", as in section 3.1 of YaRN);
    - ``yarn``: Peng et al. 2023 (arXiv:2309.00071), section 3.2 and 3.3: w_c for pairs with 32
      rotations or more in the length of training (``--position-trained-length``, in tokens),
      w_c / s for one or fewer, a ramp between them; queries and keys are longer by 0.1 ln s + 1.

    Where we differ from the equations of YaRN, with the authors' code and ``transformers``: the
    ramp is linear in the index of the pair instead of its rotations, between whole indices.

    Weights have the same meaning with any scaling: a model trained without can be decoded
    (``--model-overrides``) or trained further with it.
    """

    name = "rotary"
    acts_in = SELF_ATTENTION
    color = "#cc79a7"
    family = "rotation"

    scaling: str | None = optional(
        "--position-scaling", str, "lower frequencies, for longer sentences than trained", SCALINGS
    )
    scaling_factor: float | None = optional(
        "--position-scaling-factor", float, "ratio of their length to that of training"
    )
    trained_length: int | None = optional(
        "--position-trained-length", int, "tokens of the longest training sentences, for yarn"
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
            if (self.scaling == "yarn") != (self.trained_length is not None):
                yield f"--position-trained-length: give it for {flag} yarn, and only for it"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return RotaryPositions(shape, self)

    def frequencies(self, head_dim: int, device: torch.device | None = None) -> Tensor:
        """Angle per position of each of the D/2 pairs, (D/2,) in float64."""
        pair = torch.arange(0, head_dim, 2, dtype=torch.float64, device=device) / head_dim
        frequency, factor = torch.pow(BASE, -pair), self.scaling_factor or 1.0
        if self.scaling == "ntk":
            # A single pair is the fastest, which is unchanged.
            stretch: float = factor ** (head_dim / max(head_dim - 2, 1))
            return torch.pow(BASE * stretch, -pair)
        if self.scaling == "linear":
            return frequency / factor
        if self.scaling == "yarn":
            share = self._ramp(head_dim, device)
            return frequency * (1 - share) + frequency / factor * share
        return frequency

    def _ramp(self, head_dim: int, device: torch.device | None) -> Tensor:
        """YaRN: the share of the factor for each pair, from 0 to 1, (D/2,)."""

        def pair_with(rotations: float) -> float:
            """Real-valued index of the pair with so many rotations in the length of training."""
            wavelength = (self.trained_length or 1) / rotations
            return head_dim * math.log(wavelength / (2 * math.pi)) / (2 * math.log(BASE))

        first = max(math.floor(pair_with(FAST)), 0)
        last = max(min(math.ceil(pair_with(SLOW)), head_dim - 1), first)
        width = last - first or 0.001  # no pair between: a step, as in transformers
        pair = torch.arange(head_dim // 2, dtype=torch.float64, device=device)
        return ((pair - first) / width).clamp(0, 1)

    def attention_factor(self) -> float:
        """The factor of the length of queries and keys."""
        return 0.1 * math.log(self.scaling_factor or 1.0) + 1 if self.scaling == "yarn" else 1.0
