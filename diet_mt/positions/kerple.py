"""KERPLE: keys count less with their distance, by a kernel whose two rates each head learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

import torch
from torch import Tensor, nn

from .base import DECODER, ENCODER, AttentionPositions, AttentionShape, PositionEncoding
from .options import option
from .relative import RelativeBias, distances

KERNELS = ("log", "power")
# The least rate that the authors' code (chijames/KERPLE) lets a gradient step reach; here it bounds
# the initial values alone.
LEAST = 0.01
# The exponent of the power kernel must stay below 2 for it to be a kernel (section 3.1).
STEEPEST = 2.0


class Rates(nn.Module):
    """r1 and r2 of one layer, (H|1, 1) each, stored so that both stay positive whatever is learned.

    ``raw_r1`` is log r1; ``raw_r2`` log r2, for the power kernel the logit of r2 / 2. Drawn as in
    the authors' code: the factor of the logarithm and the exponent from 0 to 2, the others from 0
    to 1.
    """

    def __init__(self, heads: int, kernel: str) -> None:
        super().__init__()
        power = kernel == "power"
        r1, r2 = torch.rand(2, heads, 1).clamp(min=LEAST)
        self.raw_r1 = nn.Parameter((r1 if power else 2 * r1).log())
        self.raw_r2 = nn.Parameter(r2.logit(eps=LEAST) if power else r2.log())


class KerpleBias(RelativeBias):
    """-r1 log(1 + r2 |i - j|), or -r1 |i - j|^r2, for all layers: (L|1, H|1, T, S)."""

    limited: ClassVar[bool] = False

    def __init__(self, shape: AttentionShape, sharing: Optional[str], kernel: str) -> None:
        super().__init__(shape, sharing, lambda heads: Rates(heads, kernel))
        self.kernel = kernel

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        r1, raw_r2 = self.stacked("raw_r1").exp(), self.stacked("raw_r2")  # (L|1, H|1, 1)
        away = distances(lowest, highest, r1.device).abs()
        if self.kernel == "power":
            return -r1 * away.to(r1.dtype) ** (STEEPEST * torch.sigmoid(raw_r2))
        return -r1 * torch.log1p(raw_r2.exp() * away)


@dataclass(frozen=True)
class Kerple(PositionEncoding):
    """Chi et al. 2022, "KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation"
    (arXiv:2205.09921), section 4, equations 8 (power) and 9 (logarithm):

        A[i, j] = q_i . k_j / sqrt(D) - r1 log(1 + r2 |i - j|)
        A[i, j] = q_i . k_j / sqrt(D) - r1 |i - j|^r2, with ``--position-kernel power``

    r1 and r2 > 0 are learned for each head of each layer, the exponent below 2. Nothing in
    cross-attention, where target and source positions have no distance. Where we differ: the paper
    has decoders only; the encoder has the same rates to both sides. The authors' code cuts rates
    off at 0.01 (and the exponent at 2), where gradients end; here they are exponentials (and 2
    sigmoids) of what is learned.
    """

    name: ClassVar[str] = "kerple"
    acts_in: ClassVar[Tuple[str, ...]] = (ENCODER, DECODER)
    default_sharing: ClassVar[Optional[str]] = "none"

    kernel: str = option(
        "--position-kernel",
        "log",
        "how the weight of a key falls with its distance",
        choices=KERNELS,
    )

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return KerpleBias(shape, self.sharing, self.kernel)
