"""Absolute positions at the input: none, sinusoidal, learned, concatenated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..system.errors import UserError
from .base import InputPositions, PositionEncoding, normal
from .options import rank_option
from .position_ids import REFUSE, PositionRange, as_tensor, required_size


@dataclass(frozen=True)
class InputEncoding(PositionEncoding):
    """An encoding that acts at the input only."""

    acts_in = ()
    family = "input"


@dataclass(frozen=True)
class NoPositions(PositionEncoding):
    """A[i, j] = q_i . k_j / sqrt(D): only the causal mask of the decoder depends on word order."""

    name = "none"
    acts_in = ()
    color = "#aaaaaa"
    family = "none"


def sinusoids(length: int, width: int) -> Tensor:
    """Sinusoids of positions 0 to n - 1, (n, E) float32: E/2 sines, then E/2 cosines."""
    return sinusoids_at(torch.arange(length, dtype=torch.float64), width)


def sinusoids_at(position: Tensor, width: int) -> Tensor:
    """Sinusoids of real-valued positions (...), computed in their precision: (..., E) float32."""
    half = width // 2
    # Spacing of Tensor2Tensor and fairseq: wavelengths from 2 pi to 10000 * 2 pi, both included.
    step = math.log(10000.0) / max(half - 1, 1)
    pair = torch.arange(half, dtype=position.dtype, device=position.device)
    angle = position.unsqueeze(-1) * torch.exp(pair * -step)  # (..., E/2)
    return torch.cat([angle.sin(), angle.cos()], dim=-1).float()  # (..., E)


class SinusoidalInput(InputPositions):
    """Sinusoids at the input: a fixed table, which checkpoints do not contain.

    ``first``: (1,), only with weights of fairseq's Transformer, the position of the first token
    there. Checkpoints contain it; angles are then in float32, as in fairseq.
    """

    first: Tensor | None

    def __init__(self, max_positions: int, embed_dim: int) -> None:
        super().__init__(max_positions, embed_dim)
        if embed_dim % 2:
            raise UserError(
                "sinusoidal positions need an even --encoder-embed-dim and --decoder-embed-dim, "
                f"not {embed_dim}"
            )
        self.register_buffer("values", sinusoids(max_positions, embed_dim), persistent=False)
        self.register_buffer("first", None)

    def table(self) -> Tensor:
        return self.get_buffer("values")

    def rows(self, at: PositionRange) -> Tensor:
        """Rows of these positions, (1, T, E); an extrapolated row is a value of the formula."""
        values = self.table()
        if required_size(at) <= self.max_positions or self.extrapolation == REFUSE:
            return super().rows(at)
        position = as_tensor(at, values.device).double()
        if self.first is not None:
            position = (position + self.first).float()
        return sinusoids_at(position, self.embed_dim).to(values.dtype).unsqueeze(0)

    def of_fairseq(self, table: Tensor | None, first: int) -> dict[str, Tensor]:
        return {"first": torch.tensor([float(first)])}

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *args: Any) -> None:
        first = state.get(f"{prefix}first")
        if first is not None or self.first is not None:
            values, position = self.table(), torch.arange(len(self.table()), dtype=torch.float64)
            if first is not None:
                state[f"{prefix}first"] = first = first.round()  # of averaged checkpoints
                position = (position + first.cpu()).float()
            self.first = None if first is None else first.to(values)
            self.values = sinusoids_at(position, self.embed_dim).to(values)
        super()._load_from_state_dict(state, prefix, *args)


@dataclass(frozen=True)
class Sinusoidal(InputEncoding):
    """Sinusoids at the input (Vaswani et al. 2017, arXiv:1706.03762, section 3.5):

        x_i + [sin(i w); cos(i w)]

    Where we differ, with Tensor2Tensor and fairseq: sines and cosines are two blocks of columns
    instead of alternating, and the longest wavelength is exactly 10000 * 2 pi. The first token is
    at position 0; in fairseq, and here with weights of fairseq's Transformer, it is at 2.
    """

    name = "sinusoidal"
    color = "#000000"
    fixed_input = True

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return SinusoidalInput(max_positions, embed_dim)


class LearnedInput(InputPositions):
    """A learned table P (n, E), initialized like the token embeddings: normal with std E^-0.5."""

    def __init__(self, max_positions: int, width: int, std: float | None = None) -> None:
        super().__init__(max_positions, width)
        self.weight = nn.Parameter(normal((max_positions, width), std or width**-0.5))

    def draw(self, std: float) -> None:
        nn.init.normal_(self.weight, std=std)

    def table(self) -> Tensor:
        return self.weight

    def of_fairseq(self, table: Tensor | None, first: int) -> dict[str, Tensor]:
        assert table is not None
        return {"weight": table[first:]}


@dataclass(frozen=True)
class Learned(InputEncoding):
    """Learned vectors at the input, x_i + P_i (Devlin et al. 2018, arXiv:1810.04805, section 3)."""

    name = "learned"
    color = "#7f4a1e"

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return LearnedInput(max_positions, embed_dim)


class ConcatInput(LearnedInput):
    """A learned table P (n, R) in the last R of E columns, where token embeddings are 0.

    Initially normal with standard deviation 1, about that of token embeddings, which start with
    (E-R)^-0.5 and are scaled by sqrt(E) at the input.
    """

    def __init__(self, max_positions: int, embed_dim: int, rank: int) -> None:
        super().__init__(max_positions, rank, std=1.0)
        self.embed_dim = embed_dim

    def table(self) -> Tensor:
        return F.pad(self.weight, (self.embed_dim - self.weight.size(1), 0))


@dataclass(frozen=True)
class Concat(InputEncoding):
    """Concatenation [x_i ; P_i], with x of width E - R and learned P of width R, instead of a sum.

    If token embeddings are tied to the output, there is a projection from E to E - R before it. R
    (``--position-rank``) is an eighth of E by default.
    """

    name = "concat"
    color = "#f032e6"

    rank: int | None = rank_option()

    def token_dim(self, embed_dim: int) -> int:
        rank = self.rank or max(embed_dim // 8, 1)  # with 8 heads, the size of one
        if rank >= embed_dim:
            raise UserError(
                f"concat: positions of width {rank} (--position-rank) leave no room for the words "
                f"in a model of width {embed_dim}"
            )
        return embed_dim - rank

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions:
        return ConcatInput(max_positions, embed_dim, embed_dim - self.token_dim(embed_dim))
