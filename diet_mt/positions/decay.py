"""ALiBi, KERPLE and Sandwich: biases that fall with the distance, at a rate of each head.

In cross-attention, where target and source positions have no distance, only ALiBi in the form of
Marian acts. The papers have decoders only; here the encoder has the same bias on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from .base import (
    DECODER,
    ENCODER,
    KINDS,
    SELF_ATTENTION,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
    Table,
)
from .options import flag_option, option
from .position_ids import frequencies
from .relative import RelativeBias, distances

# KERPLE: the lowest rate of the authors' code (chijames/KERPLE), which clamps there after each
# update; here it bounds the initial values only.
LEAST = 0.01
# KERPLE: the exponent is below 2, or it would be no kernel (section 3.1).
STEEPEST = 2.0
# Sandwich: columns of the sinusoids, whatever the width of the model, as in all of the paper's.
WIDTH = 128


def slopes(heads: int, device: torch.device) -> Tensor:
    """m_h for each head, (H,) float64: a geometric series from 2^(-8/H) down to 2^-8.

    Where H is no power of two, the slopes of the next smaller power, then every second one of the
    next larger power, until there are H: the rule of the paper's own code.
    """
    power = 1 << (heads.bit_length() - 1)
    series = torch.arange(-8, -8 * (power + 1), -8, dtype=torch.float64, device=device)
    between = torch.arange(-4, -8 * power, -8, dtype=torch.float64, device=device)
    return torch.exp2(torch.cat([series, between])[:heads] / power)


def marian_table(heads: int, kind: str) -> Table:
    """Slope and offset of one layer, (H|1, 1) each: Marian's initial values, which it does not
    explain (``src/layers_new/alibi.h``).
    """
    slope, offset = [-0.1] * heads, [0.3] * heads  # in cross-attention
    if kind == DECODER:
        slope, offset = [-(2 ** (-8 * h / heads)) for h in range(1, heads + 1)], [0.0] * heads
    elif kind == ENCODER:
        slope = [-2.0, -1.0, -0.5, -0.25, *[-0.05] * heads][:heads]
        offset = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, *[0.0] * heads][:heads]
    return Table(slope=torch.tensor(slope)[:, None], offset=torch.tensor(offset)[:, None])


class AlibiBias(RelativeBias):
    """-m_h |i - j|, the same in all layers: (1, H, T, S); under the causal mask it is the paper's,
    -m_h (i - j) for j <= i. With tables ``slope`` and ``offset``, Marian's: (L|1, H|1, T, S).
    """

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        device = self.like.device
        distance = distances(lowest, highest, device)
        if self.tables():
            return self.stacked("slope") * (self.stacked("offset") - distance).abs()
        slope = slopes(self.shape.heads, device)
        return -(slope[:, None] * distance.abs()).unsqueeze(0)  # (1, H, count)


@dataclass(frozen=True)
class Alibi(PositionEncoding):
    """Press et al. 2021, "Train Short, Test Long" (arXiv:2108.12409), section 3:

        A[i, j] = q_i . k_j / sqrt(D) - m_h |i - j|

    No parameters. With ``--position-trained-slopes`` that of Marian (marian-dev, ``--alibi``), for
    translation, also in cross-attention:

        A[i, j] = q_i . k_j / sqrt(D) + m_h |j - i + b_h|

    m and b are trained for each head of encoder, decoder and cross-attention, shared by all
    layers. b tells keys before a query from those behind it, and shifts the diagonal of
    cross-attention. Where we differ: Marian can also restart the diagonal at separators inside a
    source of several sentences (``--transformer-alibi-shift``), of which a sentence has none.
    """

    name = "alibi"
    acts_in = SELF_ATTENTION
    color = "#882255"

    trained_slopes: bool | None = flag_option(
        "--position-trained-slopes", "train slopes and offsets, also in cross-attention (Marian)"
    )

    def __post_init__(self) -> None:
        if self.trained_slopes:
            object.__setattr__(self, "acts_in", KINDS)
            object.__setattr__(self, "default_sharing", "layer-wise")
        super().__post_init__()

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        table = partial(marian_table, kind=shape.kind) if self.trained_slopes else None
        return AlibiBias(shape, self.sharing, table)


def rates(heads: int, kernel: str) -> Table:
    """r1 and r2 of KERPLE for one layer, (H|1, 1) each, in a form where they are always positive.

    ``raw_r1`` is log r1; ``raw_r2`` log r2, for the power kernel the logit of r2 / 2. Initialized
    as in the authors' code: the factor of the logarithm and the exponent uniform from 0 to 2, the
    others from 0 to 1.
    """
    r1, r2 = torch.rand(2, heads, 1).clamp(min=LEAST)
    if kernel == "power":
        return Table(raw_r1=r1.log(), raw_r2=r2.logit(eps=LEAST))
    return Table(raw_r1=(2 * r1).log(), raw_r2=r2.log())


class KerpleBias(RelativeBias):
    """-r1 log(1 + r2 |i - j|), or -r1 |i - j|^r2, for all layers: (L|1, H|1, T, S)."""

    def __init__(self, shape: AttentionShape, sharing: str | None, kernel: str) -> None:
        super().__init__(shape, sharing, lambda heads: rates(heads, kernel))
        self.kernel = kernel

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        r1, raw_r2 = self.stacked("raw_r1").exp(), self.stacked("raw_r2")  # (L|1, H|1, 1)
        distance = distances(lowest, highest, r1.device).abs()
        if self.kernel == "power":
            return -r1 * distance.to(r1.dtype) ** (STEEPEST * torch.sigmoid(raw_r2))
        return -r1 * torch.log1p(raw_r2.exp() * distance)


@dataclass(frozen=True)
class Kerple(PositionEncoding):
    """Chi et al. 2022, "KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation"
    (arXiv:2205.09921), section 4, equations 8 (power) and 9 (logarithm):

        A[i, j] = q_i . k_j / sqrt(D) - r1 log(1 + r2 |i - j|)
        A[i, j] = q_i . k_j / sqrt(D) - r1 |i - j|^r2, with ``--position-kernel power``

    r1 and r2 > 0 are learned for each head of each layer, the exponent below 2. Where we differ:
    the authors' code clamps rates at 0.01 (and the exponent at 2), where gradients vanish; here
    they are exponentials (and 2 sigmoids) of the parameters.
    """

    name = "kerple"
    acts_in = SELF_ATTENTION
    default_sharing = "none"
    color = "#a3a300"

    kernel: str = option(
        "--position-kernel", "log", "decay with distance", choices=("log", "power")
    )

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return KerpleBias(shape, self.sharing, self.kernel)


class SandwichBias(RelativeBias):
    """(p_i . p_j - p_i . p_i) / (8 h / H) for head h from 1 to H, the same in all layers:
    (1, H, T, S).
    """

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        device, heads = self.like.device, self.shape.heads
        angle = distances(lowest, highest, device)[:, None] * frequencies(WIDTH, device)
        product = (angle.cos() - 1).sum(-1)  # (count,)
        head = torch.arange(1, heads + 1, dtype=torch.float64, device=device)[:, None]
        return (product / (8 * head / heads)).unsqueeze(0)  # (1, H, count)


@dataclass(frozen=True)
class Sandwich(PositionEncoding):
    """Chi et al. 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field
    Analysis" (arXiv:2212.10356), its equation of Sandwich:

        A[i, j] = q_i . k_j / sqrt(D) + p_i . p_j / (8 h / H)

    p are sinusoids of 128 columns, whatever the width of the model, so that p_i . p_j = sum_c
    cos((i - j) / 10000^(2 c / 128)) depends on the distance alone; h counts the heads from 1 to H.
    No parameters. Where we differ: p_i . p_i = 64 is subtracted, to which softmax is invariant, so
    that half precision represents the bias of near keys exactly.
    """

    name = "sandwich"
    acts_in = SELF_ATTENTION
    color = "#c4a494"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return SandwichBias(shape)
