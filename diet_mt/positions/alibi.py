"""ALiBi: keys count less the further away they are, at a rate of each head's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, List, Tuple

import torch
from torch import Tensor

from .base import DECODER, ENCODER, AttentionPositions, AttentionShape, PositionEncoding
from .relative import RelativeBias, distances


def slopes(heads: int) -> List[float]:
    """m_h for each head: a geometric series from 2^(-8/H) down to 2^-8.

    Where H is no power of two, the slopes of the next smaller power, then those with odd numbers of
    the next larger one, until there are H: the rule of the paper's own code.
    """
    power = 1 << (heads.bit_length() - 1)
    series = [2 ** (-8 * number / power) for number in range(1, power + 1)]
    between = [2 ** (-4 * number / power) for number in range(1, 2 * power, 2)]
    return (series + between)[:heads]


class AlibiBias(RelativeBias):
    """-m_h |i - j|, the same in all layers: (1, H, T, S).

    In the decoder the causal mask leaves of it what the paper has, -m_h (i - j) for j <= i.
    """

    limited: ClassVar[bool] = False

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        device = self.like.device
        rates = torch.tensor(slopes(self.shape.heads), dtype=torch.float64, device=device)
        distance = distances(lowest, highest, device).abs()
        return -(rates[:, None] * distance).unsqueeze(0)  # (1, H, count)


@dataclass(frozen=True)
class Alibi(PositionEncoding):
    """Press et al. 2021, "Train Short, Test Long" (arXiv:2108.12409), section 3:

        A[i, j] = q_i . k_j / sqrt(D) - m_h |i - j|

    Nothing in cross-attention, where target and source positions have no distance, and no
    parameters. Where we differ: the paper has decoders only; the encoder has the same slope to
    both sides.
    """

    name: ClassVar[str] = "alibi"
    acts_in: ClassVar[Tuple[str, ...]] = (ENCODER, DECODER)

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return AlibiBias(shape)
