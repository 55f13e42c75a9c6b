"""A learned vector per position, added at the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Tuple

import torch
from torch import Tensor, nn

from .base import PositionEncoding
from .input import InputPositions


class LearnedInput(InputPositions):
    """P (n, E), drawn like the token embeddings: normal with standard deviation E^-0.5."""

    def __init__(self, max_positions: int, embed_dim: int) -> None:
        super().__init__(max_positions, embed_dim)
        self.weight = nn.Parameter(torch.empty(max_positions, embed_dim))
        self.draw(embed_dim**-0.5)

    def draw(self, std: float) -> None:
        nn.init.normal_(self.weight, std=std)

    def table(self) -> Tensor:
        return self.weight


@dataclass(frozen=True)
class Learned(PositionEncoding):
    """Devlin et al. 2018, "BERT" (arXiv:1810.04805), section 3: x_i + P_i, one vector per
    position for the whole stack.
    """

    name: ClassVar[str] = "learned"
    acts_in: ClassVar[Tuple[str, ...]] = ()

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return LearnedInput(max_positions, embed_dim)
