"""Rotary positions: queries and keys rotated by angles proportional to their position."""

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
from .base import SELF_ATTENTION, AttentionPositions, AttentionShape, PositionEncoding
from .options import option, optional, options_of
from .position_ids import BASE, PositionRange, as_tensor, frequencies
from .terms import PositionTerms, Row, select_row

# Required options of each scaling.
SCALINGS = {
    "linear": ("scaling_factor",),
    "ntk": ("scaling_factor",),
    "dynamic": ("scaling_factor", "trained_length"),
    "yarn": ("scaling_factor", "trained_length"),
    "llama3": ("scaling_factor", "trained_length"),
    "longrope": ("scaling_factor", "trained_length", "pair_factors"),
}
# Rotations in the length of training: pairs with at least FAST (YaRN, section 3.2) or HIGH (Llama
# 3.1, high_freq_factor) are unchanged, those with at most SLOW are slowed by the whole factor.
FAST, HIGH, SLOW = 32.0, 4.0, 1.0


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Columns (0, 1), (2, 3), ... of ``x`` (B, H, T, D) rotated by complex ``rotation`` (T, D/2).

    Computed in the precision of ``rotation``, returned in that of ``x``.
    """
    exported = not rotation.is_complex()  # cosines and sines (T, D/2, 2)
    if exported or torch.compiler.is_compiling():  # complex numbers would not be fused
        cos, sin = (rotation if exported else torch.view_as_real(rotation)).unbind(-1)
        left, right = x.to(cos.dtype).unflatten(-1, (-1, 2)).unbind(-1)
        rotated = left * cos - right * sin, left * sin + right * cos
        return torch.stack(rotated, dim=-1).flatten(-2).to(x.dtype)
    # A pair of columns is one complex number, which one multiplication rotates.
    pairs = torch.view_as_complex(x.to(rotation.dtype.to_real()).unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(-2).to(x.dtype)


@dataclass(frozen=True, kw_only=True)
class RotaryTerms(PositionTerms):
    """Rotation of queries and, before these are cached, of new keys at the same positions.

    ``rotation``: (T, D/2), complex.
    """

    rotation: Tensor

    def step(self, row: Row, keys: int) -> RotaryTerms:
        return replace(self, rotation=select_row(self.rotation, row, 0))

    def queries(self, q: Tensor) -> Tensor:
        return rotate(q, self.rotation)

    def keys(self, k: Tensor, padding: Tensor | None = None) -> Tensor:
        return rotate(k, self.rotation)


class RotaryPositions(AttentionPositions):
    """Rotations of all layers, with the frequencies of ``encoding``."""

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
        # Computed in float64, then rounded to at least float32.
        position = as_tensor(queries, self.like.device)
        frequency = self.encoding.frequencies(self.shape.head_dim, position)  # (T|1, D/2)
        angle = position[:, None] * frequency
        factor = self.encoding.attention_factor()
        radius = torch.ones_like(angle).masked_fill(frequency > 0, factor)
        double = at_least_float32(self.like.dtype) == torch.float64
        precision = torch.complex128 if double else torch.complex64
        return [RotaryTerms(rotation=torch.polar(radius, angle).to(precision))]

    def tabulate(self) -> None:
        """Stores the rotations as cosines and sines (n, D/2, 2): ONNX has no complex numbers."""
        terms: Any = self.terms(range(self.shape.max_queries), range(0))[0]
        stored = RotaryTerms(rotation=torch.view_as_real(terms.rotation))
        vars(self)["terms"] = lambda queries, _: [stored.step(queries, 0)]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.encoding}"


@dataclass(frozen=True)
class Rotary(PositionEncoding):
    """Rotary positions (Su et al. 2021, arXiv:2104.09864, section 3.2.2, equations 14 to 16).

    q_i and k_j of self-attention are rotated, so that their product depends on i - j; values are
    not. Pairs are neighboring columns, as in these equations and equation 34. There are no
    parameters, and no positions in cross-attention, between two sentences.

    Pair c is rotated by w_c = b^(-2c/D) per position; b (``--position-base``) is 10000. With
    ``--position-fraction`` f, only the first f D columns of a head are rotated, and f D replaces D,
    as in GPT-J and GPT-NeoX.

    For sentences longer than the L tokens of training (``--position-trained-length``),
    ``--position-scaling`` reduces the frequencies by ``--position-scaling-factor`` s:

    - ``linear``: w_c / s, position interpolation (Chen et al. 2023, arXiv:2306.15595, equation 4);
    - ``ntk``: (b s^(D/(D-2)))^(-2c/D), the first pair unchanged, the last s times slower
      ("NTK-aware", section 3.1 of YaRN);
    - ``dynamic``: ``ntk`` with s n / L - (s - 1) instead of s at token n > L of a sentence, counted
      from 1; unchanged up to L;
    - ``yarn``: w_c for pairs with at least 32 rotations in L tokens, w_c / s for at most one, a
      ramp between them; rotated columns are multiplied by 0.1 ln s + 1 (Peng et al. 2023,
      arXiv:2309.00071, sections 3.2 and 3.4);
    - ``llama3``: w_c for pairs with at least 4 rotations in L tokens, w_c / s for at most one, a
      ramp between them (the code of Llama 3.1);
    - ``longrope``: w_c / f_c, with f (``--position-pair-factors``) from a search; rotated columns
      are multiplied by sqrt(1 + ln s / ln L) (Ding et al. 2024, arXiv:2402.13753).

    Where we differ: as in the authors' code and ``transformers``, the ramp of YaRN is linear in the
    index of the pair, between integers, instead of in its number of rotations. In ``transformers``,
    n of ``dynamic`` is the length of the longest sentence of the batch or, in decoding with a
    cache, of the prefix; here it is always that of the prefix, so that a translation depends on
    neither its batch nor the cache. LongRoPE's second list of factors, for sentences up to L, is
    another value of the option here; its exception for the first tokens is not implemented.

    Weights have the same meaning with any scaling: models trained without one can be decoded
    (``--model-overrides``) or fine-tuned with it.
    """

    name = "rotary"
    acts_in = SELF_ATTENTION
    color = "#cc79a7"
    family = "rotation"

    base: float | None = option(
        "--position-base", None, "base of the frequencies (default 10000)", kind=float, least=2
    )
    fraction: float | None = option(
        "--position-fraction", None, "share of rotated columns (default 1)", kind=float, least=0
    )
    scaling: str | None = optional(
        "--position-scaling", str, "scaling of the frequencies for longer sentences", SCALINGS
    )
    scaling_factor: float | None = optional(
        "--position-scaling-factor", float, "ratio of the longest sentence to that of training"
    )
    trained_length: int | None = optional(
        "--position-trained-length", int, "tokens of the longest training sentence", least=2
    )
    pair_factors: str | None = optional(
        "--position-pair-factors", str, "divisors of the frequencies, separated by commas"
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
        """The number of rotated columns of a head with D columns."""
        return int(head_dim * (1.0 if self.fraction is None else self.fraction))

    def factors(self) -> list[float]:
        """Divisors of the frequencies; empty if one of them is not a positive number."""
        try:
            factors = [float(factor) for factor in (self.pair_factors or "").split(",")]
        except ValueError:
            return []
        return factors if all(0 < factor < math.inf for factor in factors) else []

    def frequencies(self, head_dim: int, position: Tensor) -> Tensor:
        """Angle per position of the D/2 pairs, 0 without rotation: (T|1, D/2) in float64.

        T for ``dynamic``, at ``position`` (T,), otherwise 1.
        """
        width, factor = self.columns(head_dim), self.scaling_factor or 1.0
        base: Any = self.base or BASE
        if self.scaling in ("ntk", "dynamic"):
            stretch: Any = factor
            if self.scaling == "dynamic":
                tokens = (position[:, None] + 1).double()
                stretch = factor * (tokens / (self.trained_length or 1)).clamp(min=1) - (factor - 1)
            # A single pair is the first, which is unchanged.
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
        """Weight, from 0 to 1, of the scaled frequency of each pair of columns: (1, D/2)."""
        length, pairs = self.trained_length or 1, frequency.size(-1)
        if self.scaling == "llama3":
            rotations = length * frequency / (2 * math.pi)
            return ((HIGH - rotations) / (HIGH - SLOW)).clamp(0, 1)

        def pair_with(rotations: float) -> float:
            """Index, a real number, of the pair with ``rotations`` in the length of training."""
            wavelength = length / rotations
            return pairs * math.log(wavelength / (2 * math.pi)) / math.log(self.base or BASE)

        first = max(math.floor(pair_with(FAST)), 0)
        last = max(min(math.ceil(pair_with(SLOW)), 2 * pairs - 1), first)
        width = last - first or 0.001  # a step if there is no pair between, as in transformers
        pair = torch.arange(pairs, dtype=torch.float64, device=frequency.device)
        return ((pair - first) / width).clamp(0, 1)[None]

    def attention_factor(self) -> float:
        """Factor of the rotated columns of queries and keys."""
        factor = math.log(self.scaling_factor or 1.0)
        if self.scaling == "longrope":
            return math.sqrt(1 + factor / math.log(self.trained_length or 2))
        return 0.1 * factor + 1 if self.scaling == "yarn" else 1.0
