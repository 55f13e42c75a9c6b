"""CAPE: sinusoids at the input, in training at positions that are shifted, shaken and scaled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Tuple

import torch
from torch import Tensor

from .base import PositionEncoding
from .input import InputPositions
from .options import option
from .sinusoidal import SinusoidalInput, sinusoids_at
from .spans import Span, as_tensor


class AugmentedInput(SinusoidalInput):
    """Sinusoids; in training the positions of a sentence are (i + D + e_i) l.

    D is drawn evenly up to ``global_shift`` to both sides, e_i for every token up to
    ``local_shift``, log l up to log ``global_scale``. The draws are torch's own, so the seed that
    fairseq sets for every update repeats them.
    """

    def __init__(
        self,
        max_positions: int,
        embed_dim: int,
        *,
        global_shift: float,
        local_shift: float,
        global_scale: float,
    ) -> None:
        super().__init__(max_positions, embed_dim)
        self.global_shift, self.local_shift = global_shift, local_shift
        self.global_scale = global_scale

    def forward(self, tokens: Tensor, at: Span) -> Tensor:
        rows = self.rows(at)
        settings = self.global_shift, self.local_shift, self.global_scale
        if not self.training or settings == (0, 0, 1):
            return rows
        drawn = self.augmented(as_tensor(at, tokens.device), tokens.size(0))
        return sinusoids_at(drawn, self.embed_dim).to(rows.dtype)

    def augmented(self, position: Tensor, sentences: int) -> Tensor:
        """Positions (T,) -> those of every sentence in this step of training, (B, T) in float64."""

        def drawn(width: int, most: float) -> Tensor:
            size = sentences, width
            return (2 * torch.rand(size, dtype=torch.float64, device=position.device) - 1) * most

        shift, scale = drawn(1, self.global_shift), drawn(1, math.log(self.global_scale))
        return (position + shift + drawn(position.size(0), self.local_shift)) * scale.exp()


@dataclass(frozen=True)
class Cape(PositionEncoding):
    """Likhomanenko et al. 2021, "CAPE: Encoding Relative Positions with Continuous Augmented
    Positional Embeddings" (arXiv:2106.03143), section 3:

        x_i + [sin(p_i w); cos(p_i w)], p_i = (i + D + e_i) l in training, otherwise i

    Every sentence has a D and an l of its own, every token an e_i (``--position-global-shift``,
    ``--position-local-shift``, ``--position-global-scale``); the defaults, 5, 0.5 and 1.03, are the
    authors' for text. As they do for text, positions count from the first token; their mean is
    subtracted for speech alone, and no decoder could: it does not know how long its sentence will
    be. Where we differ: source and target are drawn apart, and positions of the source are not
    scaled to the lengths of the target. The sinusoids are those of ``sinusoidal``.
    """

    name: ClassVar[str] = "cape"
    acts_in: ClassVar[Tuple[str, ...]] = ()
    fixed_input: ClassVar[bool] = True
    draws: ClassVar[bool] = True

    global_shift: float = option(
        "--position-global-shift", 5.0, "largest shift of a sentence drawn in training", least=0
    )
    local_shift: float = option(
        "--position-local-shift", 0.5, "largest shift of a token drawn in training", least=0
    )
    global_scale: float = option(
        "--position-global-scale", 1.03, "largest factor of a sentence drawn in training"
    )

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return AugmentedInput(
            max_positions,
            embed_dim,
            global_shift=self.global_shift,
            local_shift=self.local_shift,
            global_scale=self.global_scale,
        )
