"""SHAPE and CAPE: sinusoids at the input, with randomly augmented positions in training.

Draws use torch's generator, so they are repeated by the seed that fairseq sets for every update.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .absolute import InputEncoding, SinusoidalInput, sinusoids_at
from .base import InputPositions
from .options import option
from .position_ids import PositionRange, as_tensor, required_size


class ShiftedInput(SinusoidalInput):
    """Sinusoids; in training, a sentence starts at a random position from 0 to ``shift``."""

    def __init__(self, max_positions: int, embed_dim: int, shift: int) -> None:
        super().__init__(max_positions + shift, embed_dim)
        self.max_positions = max_positions
        self.shift = shift

    def forward(self, tokens: Tensor, at: PositionRange) -> Tensor:
        rows = self.rows(at)
        if not self.training or self.shift == 0:
            return rows
        first = torch.randint(self.shift + 1, (tokens.size(0), 1), device=tokens.device)
        position = first + as_tensor(at, tokens.device)  # (B, T)
        if required_size(at) <= self.max_positions:
            return self.table()[position]  # (B, T, E)
        return sinusoids_at(position.double(), self.embed_dim).to(rows.dtype)  # (B, T, E)


@dataclass(frozen=True)
class Shape(InputEncoding):
    """SHAPE: shifted sinusoids (Kiyono et al. 2021, arXiv:2109.05644, section 3):

        x_i + [sin((i + k) w); cos((i + k) w)]

    In training, k is drawn uniformly from 0 to K (``--position-shift``, 500 as in their experiments
    with WMT) for every sentence, for source and target separately; otherwise it is 0. The sinusoids
    are those of ``sinusoidal``, to which K = 0 is equivalent. Where we differ: the authors' code
    (butsugiri/shape) draws from 0 to K - 1, and decodes with k = K.
    """

    name = "shape"
    color = "#aec7e8"
    fixed_input = True
    draws = True

    shift: int = option(
        "--position-shift", 500, "maximum random offset of a sentence in training", least=0
    )

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return ShiftedInput(max_positions, embed_dim, self.shift)


class AugmentedInput(SinusoidalInput):
    """Sinusoids; in training, the positions of a sentence are (i + D + e_i) l.

    D, e_i of every token and log l are uniform between plus and minus ``global_shift``,
    ``local_shift`` and log ``global_scale``.
    """

    def __init__(self, max_positions: int, embed_dim: int, encoding: Cape) -> None:
        super().__init__(max_positions, embed_dim)
        self.global_shift, self.local_shift = encoding.global_shift, encoding.local_shift
        self.global_scale = encoding.global_scale

    def forward(self, tokens: Tensor, at: PositionRange) -> Tensor:
        rows = self.rows(at)
        limits = self.global_shift, self.local_shift, self.global_scale
        if not self.training or limits == (0, 0, 1):
            return rows
        positions = self.augmented(as_tensor(at, tokens.device), tokens.size(0))
        return sinusoids_at(positions, self.embed_dim).to(rows.dtype)

    def augmented(self, position: Tensor, sentences: int) -> Tensor:
        """Positions (T,) -> augmented positions of every sentence, (B, T) in float64."""

        def uniform(width: int, limit: float) -> Tensor:
            size = sentences, width
            return (2 * torch.rand(size, dtype=torch.float64, device=position.device) - 1) * limit

        shift, scale = uniform(1, self.global_shift), uniform(1, math.log(self.global_scale))
        return (position + shift + uniform(position.size(0), self.local_shift)) * scale.exp()


@dataclass(frozen=True)
class Cape(InputEncoding):
    """CAPE: augmented sinusoids (Likhomanenko et al. 2021, arXiv:2106.03143, section 3):

        x_i + [sin(p_i w); cos(p_i w)], p_i = (i + D + e_i) l in training, otherwise i

    D (``--position-global-shift``) and l (``--position-global-scale``) are drawn for every
    sentence, e_i (``--position-local-shift``) for every token; the defaults 5, 1.03 and 0.5 are the
    authors' for text. Positions count from the first token, as theirs for text; they subtract the
    mean position for speech only, and a decoder does not know the length of its output. The
    sinusoids are those of ``sinusoidal``. Where we differ: source and target are drawn separately,
    and positions of the source are not scaled to the lengths of the target.
    """

    name = "cape"
    color = "#98df8a"
    fixed_input = True
    draws = True

    global_shift: float = option(
        "--position-global-shift", 5.0, "maximum random shift of a sentence in training", least=0
    )
    local_shift: float = option(
        "--position-local-shift", 0.5, "maximum random shift of a token in training", least=0
    )
    global_scale: float = option(
        "--position-global-scale", 1.03, "maximum random scale of a sentence in training"
    )

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return AugmentedInput(max_positions, embed_dim, self)
