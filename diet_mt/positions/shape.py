"""SHAPE: sinusoids at the input, in training from a random position on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Tuple

import torch
from torch import Tensor

from .base import PositionEncoding
from .input import InputPositions
from .options import option
from .sinusoidal import SinusoidalInput, sinusoids_at
from .spans import Span, as_tensor, needed


class ShiftedInput(SinusoidalInput):
    """Sinusoids; in training sentence b starts at position k_b, drawn from 0 to ``shift``.

    The draws are torch's own, so the seed that fairseq sets for every update repeats them.
    """

    def __init__(self, max_positions: int, embed_dim: int, shift: int) -> None:
        super().__init__(max_positions + shift, embed_dim)
        self.max_positions = max_positions
        self.shift = shift

    def forward(self, tokens: Tensor, at: Span) -> Tensor:
        rows = self.rows(at)
        if not self.training or self.shift == 0:
            return rows
        first = torch.randint(self.shift + 1, (tokens.size(0), 1), device=tokens.device)
        position = first + as_tensor(at, tokens.device)  # (B, T)
        if needed(at) <= self.max_positions:
            return self.table()[position]  # (B, T, E)
        return sinusoids_at(position.double(), self.embed_dim).to(rows.dtype)  # (B, T, E)


@dataclass(frozen=True)
class Shape(PositionEncoding):
    """Kiyono et al. 2021, "SHAPE: Shifted Absolute Position Embedding for Transformers"
    (arXiv:2109.05644), section 3:

        x_i + [sin((i + k) w); cos((i + k) w)]

    In training every sentence has a k of its own, drawn evenly from 0 to K (``--position-shift``,
    500 as in their experiments with WMT), source and target apart; otherwise k is 0. Where we
    differ: the authors' code (butsugiri/shape) draws from 0 to K - 1 and decodes at k = K. The
    sinusoids are those of ``sinusoidal``. K = 0 is that encoding.
    """

    name: ClassVar[str] = "shape"
    acts_in: ClassVar[Tuple[str, ...]] = ()
    fixed_input: ClassVar[bool] = True
    draws: ClassVar[bool] = True

    shift: int = option(
        "--position-shift", 500, "largest shift of a sentence drawn in training", least=0
    )

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return ShiftedInput(max_positions, embed_dim, self.shift)
