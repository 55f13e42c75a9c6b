"""Fixed sines and cosines added at the input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Tuple

import torch
from torch import Tensor

from ..errors import UserError
from .base import PositionEncoding
from .beyond import REFUSE
from .input import InputPositions
from .spans import Span, as_tensor, needed


def sinusoids(length: int, width: int) -> Tensor:
    """(n, E) float32: the sines of all E/2 frequencies, then their cosines."""
    return sinusoids_at(torch.arange(length, dtype=torch.float64), width)


def sinusoids_at(position: Tensor, width: int) -> Tensor:
    """The same for float64 positions (...) that need not be whole: (..., E) float32."""
    half = width // 2
    # Tensor2Tensor's spacing, which fairseq shares: wavelengths from 2 pi to 10000 * 2 pi, both
    # ends included.
    step = math.log(10000.0) / max(half - 1, 1)
    pair = torch.arange(half, dtype=torch.float64, device=position.device)
    angle = position.unsqueeze(-1) * torch.exp(pair * -step)  # (..., E/2)
    return torch.cat([angle.sin(), angle.cos()], dim=-1).float()  # (..., E)


class SinusoidalInput(InputPositions):
    """The table of :func:`sinusoids`; no parameters, not in the checkpoint."""

    def __init__(self, max_positions: int, embed_dim: int) -> None:
        super().__init__(max_positions, embed_dim)
        if embed_dim % 2:
            raise UserError(
                "sinusoidal positions need an even --encoder-embed-dim and --decoder-embed-dim, "
                f"not {embed_dim}"
            )
        self.register_buffer("values", sinusoids(max_positions, embed_dim), persistent=False)

    def table(self) -> Tensor:
        return self.get_buffer("values")

    def rows(self, at: Span) -> Tensor:
        """As the base; beyond the table, where that is not refused, the sinusoids go on."""
        values = self.table()
        if needed(at) <= self.max_positions or self.beyond == REFUSE:
            return super().rows(at)
        position = as_tensor(at, values.device).double()
        return sinusoids_at(position, self.embed_dim).to(values.dtype).unsqueeze(0)


@dataclass(frozen=True)
class Sinusoidal(PositionEncoding):
    """Vaswani et al. 2017, "Attention Is All You Need" (arXiv:1706.03762), section 3.5:

        x_i + [sin(i w); cos(i w)]

    Where we differ from the print, with Tensor2Tensor and fairseq: sines and cosines stand in two
    blocks rather than alternating, and the longest wavelength is reached exactly. Unlike fairseq
    the first token is position 0, not 2.
    """

    name: ClassVar[str] = "sinusoidal"
    acts_in: ClassVar[Tuple[str, ...]] = ()
    fixed_input: ClassVar[bool] = True

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return SinusoidalInput(max_positions, embed_dim)
