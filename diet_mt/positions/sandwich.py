"""Sandwich: keys count by the inner product of the sinusoids of both positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Tuple

import torch
from torch import Tensor

from .base import DECODER, ENCODER, AttentionPositions, AttentionShape, PositionEncoding
from .relative import RelativeBias, distances

# Columns of the sinusoids, whatever the model's width: the paper's choice for all of its models.
WIDTH = 128
BASE = 10000.0


class SandwichBias(RelativeBias):
    """(p_i . p_j - p_i . p_i) / (8 h / H) for head h from 1 to H, the same in all layers:
    (1, H, T, S).
    """

    limited: ClassVar[bool] = False

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        device, heads = self.like.device, self.shape.heads
        pairs = torch.arange(WIDTH // 2, dtype=torch.float64, device=device)
        angle = distances(lowest, highest, device)[:, None] * BASE ** (-2 * pairs / WIDTH)
        fall = (angle.cos() - 1).sum(-1)  # (count,)
        head = torch.arange(1, heads + 1, dtype=torch.float64, device=device)[:, None]
        return (fall / (8 * head / heads)).unsqueeze(0)  # (1, H, count)


@dataclass(frozen=True)
class Sandwich(PositionEncoding):
    """Chi et al. 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field
    Analysis" (arXiv:2212.10356), its equation of Sandwich:

        A[i, j] = q_i . k_j / sqrt(D) + p_i . p_j / (8 h / H)

    p are sinusoids of 128 columns, whatever the width of the model, so that p_i . p_j = sum_c
    cos((i - j) / 10000^(2 c / 128)) depends on the distance alone; h counts the heads from 1 to H.
    No parameters, and nothing in cross-attention. Where we differ: the paper has decoders only; the
    encoder has the same bias to both sides. p_i . p_i = 64 is subtracted, which softmax does not
    see, and which lets half precision hold the bias of near keys exactly.
    """

    name: ClassVar[str] = "sandwich"
    acts_in: ClassVar[Tuple[str, ...]] = (ENCODER, DECODER)

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return SandwichBias(shape)
