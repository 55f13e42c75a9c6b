"""Rotary positions: queries and keys rotated by an angle proportional to their position."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn.precision import at_least_float32
from ..system.errors import UserError
from .base import (
    SELF_ATTENTION,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
)
from .options import option, optional, options_of
from .position_ids import BASE, PositionRange, as_tensor, frequencies
from .terms import PositionTerms, Row, select_row

# Scalings and the options that each of them needs.
SCALINGS = {
    "linear": ("scaling_factor",),
    "ntk": ("scaling_factor",),
    "dynamic": ("scaling_factor", "trained_length"),
    "yarn": ("scaling_factor", "trained_length"),
    "llama3": ("scaling_factor", "trained_length"),
    "longrope": ("scaling_factor", "trained_length", "pair_factors"),
}
# Pairs with more rotations than this in the length of training stay as they are; those with fewer
# than one are slowed by the whole factor. YaRN, section 3.2; Llama 3.1 (high_freq_factor).
FAST, HIGH, SLOW = 32.0, 4.0, 1.0


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Rotates columns (0, 1), (2, 3), ... of ``x`` (B, H, T, D) by the angles of ``rotation`` (T,
    D/2), complex numbers.

    In the precision of ``rotation``, returned in that of ``x``.
    """
    exported = not rotation.is_complex()  # cosines and sines (T, D/2, 2)
    if exported or torch.compiler.is_compiling():  # which fuses no complex numbers
        cos, sin = (rotation if exported else torch.view_as_real(rotation)).unbind(-1)
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
        size, columns = shape.head_dim, encoding.columns(shape.head_dim)
        if size % 2 or columns % 2 or not 0 < columns <= size:
            raise UserError(
                f"rotary positions rotate pairs of columns, not {columns} of a head size of {size}"
                "; change --*-embed-dim, --*-attention-heads or --position-fraction"
            )
        if encoding.pair_factors is not None and len(encoding.factors()) != columns // 2:
            raise UserError(
                f"--position-pair-factors {encoding.pair_factors}: give a number for each of the "
                f"{columns // 2} pairs of columns, separated by commas"
            )

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        # Computed in float64, then rounded to the model's precision, at least float32.
        position = as_tensor(queries, self.like.device)
        frequency = self.encoding.frequencies(self.shape.head_dim, position)  # (T|1, D/2)
        angle = position[:, None] * frequency
        factor = self.encoding.attention_factor()
        length = torch.ones_like(angle).masked_fill(frequency > 0, factor)
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

    Pair c is rotated by w_c = b^(-2c/D) per position; b (``--position-base``) is 10000. With
    ``--position-fraction`` f only the first f D columns of a head are rotated, with f D in the
    place of D, as in GPT-J and GPT-NeoX.

    For sentences longer than the L tokens of training (``--position-trained-length``),
    ``--position-scaling`` lowers the frequencies by ``--position-scaling-factor`` s:

    - ``linear``: w_c / s, position interpolation (Chen et al. 2023, arXiv:2306.15595, equation 4);
    - ``ntk``: (b s^(D/(D-2)))^(-2c/D), the first pair unchanged, the last s times slower ("NTK
      aware", as in section 3.1 of YaRN);
    - ``dynamic``: ``ntk`` with s n / L - (s - 1) in the place of s for token n > L of a sentence,
      from 1; no change up to L;
    - ``yarn``: Peng et al. 2023 (arXiv:2309.00071), section 3.2 and 3.3: w_c for pairs with 32
      rotations or more in L tokens, w_c / s for one or fewer, a ramp between them; queries and keys
      are longer by 0.1 ln s + 1;
    - ``llama3``: w_c for pairs with 4 rotations or more in L tokens, w_c / s for one or fewer, a
      ramp between them (the code of Llama 3.1);
    - ``longrope``: Ding et al. 2024 (arXiv:2402.13753): w_c / f_c with ``--position-pair-factors``
      f, the result of their search; queries and keys are longer by sqrt(1 + ln s / ln L).

    Where we differ from the equations of YaRN, with the authors' code and ``transformers``: the
    ramp is linear in the index of the pair instead of its rotations, between whole indices. In
    ``transformers``, n of ``dynamic`` is the longest sentence of the batch, and while decoding with
    a cache the tokens so far; here it is the latter everywhere, so that a translation depends on
    neither its batch nor the cache. LongRoPE's second list of factors, for sentences up to L, is
    another value of the option here; its exception for the first tokens is in neither.

    Weights have the same meaning with any scaling: a model trained without can be decoded
    (``--model-overrides``) or trained further with it.
    """

    name = "rotary"
    acts_in = SELF_ATTENTION
    color = "#cc79a7"
    family = "rotation"

    base: float | None = option(
        "--position-base", None, "base of the frequencies, 10000 by default", kind=float, least=2
    )
    fraction: float | None = option(
        "--position-fraction", None, "share of a head's columns that rotate", kind=float, least=0
    )
    scaling: str | None = optional(
        "--position-scaling", str, "lower frequencies, for longer sentences than trained", SCALINGS
    )
    scaling_factor: float | None = optional(
        "--position-scaling-factor", float, "ratio of their length to that of training"
    )
    trained_length: int | None = optional(
        "--position-trained-length", int, "tokens of the longest training sentences", least=2
    )
    pair_factors: str | None = optional(
        "--position-pair-factors", str, "divisor of each frequency, separated by commas"
    )

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        needed = SCALINGS.get(self.scaling or "", ())
        for name in SCALINGS["longrope"] if self.scaling in (None, *SCALINGS) else ():
            flag = dict(options_of(self))[name].flag
            if (getattr(self, name) is not None) != (name in needed):
                takers = ", ".join(each for each, names in SCALINGS.items() if name in names)
                yield f"{flag}: give it for --position-scaling {takers}, and only there"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return RotaryPositions(shape, self)

    def columns(self, head_dim: int) -> int:
        """How many of the D columns of a head rotate."""
        return int(head_dim * (1.0 if self.fraction is None else self.fraction))

    def factors(self) -> list[float]:
        """Divisors of the frequencies, or none where they are no numbers above 0."""
        try:
            factors = [float(factor) for factor in (self.pair_factors or "").split(",")]
        except ValueError:
            return []
        return factors if all(0 < factor < math.inf for factor in factors) else []

    def frequencies(self, head_dim: int, position: Tensor) -> Tensor:
        """Angle per position of each of the D/2 pairs, 0 for those that do not rotate: (T|1, D/2)
        in float64, with T for ``dynamic`` at ``position`` (T,).
        """
        width, factor = self.columns(head_dim), self.scaling_factor or 1.0
        base: Any = self.base or BASE
        if self.scaling in ("ntk", "dynamic"):
            stretch: Any = factor
            if self.scaling == "dynamic":
                tokens = (position[:, None] + 1).double()
                stretch = factor * (tokens / (self.trained_length or 1)).clamp(min=1) - (factor - 1)
            # A single pair is the fastest, which is unchanged.
            base = base * stretch ** (width / max(width - 2, 1))
        frequency = torch.atleast_2d(frequencies(width, position.device, base))
        if self.scaling == "linear":
            frequency = frequency / factor
        elif self.scaling == "longrope":
            frequency = frequency / frequency.new_tensor(self.factors())
        elif self.scaling in ("yarn", "llama3"):
            share = self._share(frequency)
            frequency = frequency * (1 - share) + frequency / factor * share
        return F.pad(frequency, (0, (head_dim - width) // 2))

    def _share(self, frequency: Tensor) -> Tensor:
        """The share of the factor for each pair of columns, from 0 to 1: (1, D/2)."""
        length, pairs = self.trained_length or 1, frequency.size(-1)
        if self.scaling == "llama3":
            rotations = length * frequency / (2 * math.pi)
            return ((HIGH - rotations) / (HIGH - SLOW)).clamp(0, 1)

        def pair_with(rotations: float) -> float:
            """Real-valued index of the pair with so many rotations in the length of training."""
            wavelength = length / rotations
            return pairs * math.log(wavelength / (2 * math.pi)) / math.log(self.base or BASE)

        first = max(math.floor(pair_with(FAST)), 0)
        last = max(min(math.ceil(pair_with(SLOW)), 2 * pairs - 1), first)
        width = last - first or 0.001  # no pair between: a step, as in transformers
        pair = torch.arange(pairs, dtype=torch.float64, device=frequency.device)
        return ((pair - first) / width).clamp(0, 1)[None]

    def attention_factor(self) -> float:
        """The factor of the length of queries and keys."""
        factor = math.log(self.scaling_factor or 1.0)
        if self.scaling == "longrope":
            return math.sqrt(1 + factor / math.log(self.trained_length or 2))
        return 0.1 * factor + 1 if self.scaling == "yarn" else 1.0
