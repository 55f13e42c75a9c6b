"""A learned vector per position beside the token embedding instead of on top of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import UserError
from .input import InputPositions
from .ranked import Ranked

# Part of the model width that positions take unless told otherwise: with 8 heads, one head's size.
_SHARE = 8


class ConcatInput(InputPositions):
    """P (n, R) in the last R of E columns, which the token embedding leaves at 0."""

    def __init__(self, max_positions: int, embed_dim: int, rank: int) -> None:
        super().__init__(max_positions, embed_dim)
        self.weight = nn.Parameter(torch.empty(max_positions, rank))
        # As large as the token embeddings: their rows, normal with (E-R)^-0.5, are scaled by
        # sqrt(E) at the input, these are not.
        self.draw(1.0)

    def draw(self, std: float) -> None:
        nn.init.normal_(self.weight, std=std)

    def table(self) -> Tensor:
        return F.pad(self.weight, (self.embed_dim - self.weight.size(1), 0))


@dataclass(frozen=True)
class Concat(Ranked):
    """[x_i ; P_i], x of width E - R and P of R: the alternative to the sum of Devlin et al. that is
    often asked about.

    Token embeddings are narrower by R, also where they are tied to the output, before which a
    projection from E to E - R then stands. R (``--position-rank``) is an eighth of E unless given.
    """

    name: ClassVar[str] = "concat"
    acts_in: ClassVar[Tuple[str, ...]] = ()

    def token_dim(self, embed_dim: int) -> int:
        rank = self.rank or max(embed_dim // _SHARE, 1)
        if rank >= embed_dim:
            raise UserError(
                f"concat: positions of width {rank} (--position-rank) leave no room for the words "
                f"in a model of width {embed_dim}"
            )
        return embed_dim - rank

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return ConcatInput(max_positions, embed_dim, embed_dim - self.token_dim(embed_dim))
