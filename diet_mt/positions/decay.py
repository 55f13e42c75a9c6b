"""ALiBi, KERPLE and Sandwich: biases that decrease with the distance, with a rate per head.

The papers have decoders only; here the encoder has the same bias in both directions. None acts in
cross-attention, where target and source positions have no distance, except for Marian's ALiBi.
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

# KERPLE: the lower bound of parameters in the authors' code (chijames/KERPLE), which clamps them in
# each forward pass; here it bounds the initial values only.
LEAST = 0.01
# KERPLE: upper bound of the exponent; above 2 the function is not a kernel (section 3.1).
STEEPEST = 2.0
# Sandwich: columns of the sinusoids for every model width, as in all models of the paper.
WIDTH = 128


def slopes(heads: int, device: torch.device) -> Tensor:
    """m_h for each head, (H,) float64: a geometric series from 2^(-8/H) down to 2^-8.

    If H is not a power of two: the slopes of the next smaller power, then every second slope of the
    next larger one, H in total, as in the paper's own code.
    """
    power = 1 << (heads.bit_length() - 1)
    series = torch.arange(-8, -8 * (power + 1), -8, dtype=torch.float64, device=device)
    between = torch.arange(-4, -8 * power, -8, dtype=torch.float64, device=device)
    return torch.exp2(torch.cat([series, between])[:heads] / power)


def marian_table(heads: int, kind: str) -> Table:
    """Slope and offset of one layer, (H|1, 1) each, initialized as in Marian.

    Its source (``src/layers_new/alibi.h``) does not explain the values.
    """
    slope, offset = [-0.1] * heads, [0.3] * heads  # in cross-attention
    if kind == DECODER:
        slope, offset = [-(2 ** (-8 * h / heads)) for h in range(1, heads + 1)], [0.0] * heads
    elif kind == ENCODER:
        slope = [-2.0, -1.0, -0.5, -0.25, *[-0.05] * heads][:heads]
        offset = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, *[0.0] * heads][:heads]
    return Table(slope=torch.tensor(slope)[:, None], offset=torch.tensor(offset)[:, None])


class AlibiBias(RelativeBias):
    """-m_h |i - j|, the same in all layers, (1, H, T, S); with a causal mask, -m_h (i - j).

    With tables ``slope`` m and ``offset`` b, Marian's m_h |j - i + b_h|: (L|1, H|1, T, S).
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
    """ALiBi: a bias linear in the distance (Press et al. 2021, arXiv:2108.12409, section 3):

        A[i, j] = q_i . k_j / sqrt(D) - m_h |i - j|

    m is fixed. With ``--position-trained-slopes``, Marian's form for translation (marian-dev,
    ``--alibi``), which also acts in cross-attention:

        A[i, j] = q_i . k_j / sqrt(D) + m_h |j - i + b_h|

    m and b are trained for each head of encoder, decoder and cross-attention, by default shared by
    all layers. b distinguishes keys before a query from keys after it, and shifts the diagonal of
    cross-attention. Where we differ: Marian can also restart the diagonal at separators in a source
    of several sentences (``--transformer-alibi-shift``); here a source is one sentence.
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
    """Parameters of KERPLE for one layer, (H|1, 1) each, with positive r1 and r2 for all values.

    ``raw_r1``: log r1; ``raw_r2``: log r2 or, for the power kernel, the logit of r2 / 2. As in the
    authors' code, the factor of the logarithm and the exponent are initially uniform from 0 to 2,
    the others from 0 to 1.
    """
    r1, r2 = torch.rand(2, heads, 1).clamp(min=LEAST)
    if kernel == "power":
        return Table(raw_r1=r1.log(), raw_r2=r2.logit(eps=LEAST))
    return Table(raw_r1=(2 * r1).log(), raw_r2=r2.log())


class KerpleBias(RelativeBias):
    """-r1 log(1 + r2 |i - j|) or -r1 |i - j|^r2 in all layers: (L|1, H|1, T, S)."""

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
    """KERPLE: a learned kernel of the distance (Chi et al. 2022, arXiv:2205.09921).

    Section 4, equations 9 (logarithm) and 8 (power):

        A[i, j] = q_i . k_j / sqrt(D) - r1 log(1 + r2 |i - j|)
        A[i, j] = q_i . k_j / sqrt(D) - r1 |i - j|^r2, with ``--position-kernel power``

    r1 and r2 > 0 are learned for each head of each layer; the exponent is below 2. Where we differ:
    the authors' code clamps r1 and r2 to at least 0.01 (and the exponent to at most 2) in each
    forward pass; here they are exponentials (and twice a sigmoid) of the parameters.
    """

    name = "kerple"
    acts_in = SELF_ATTENTION
    default_sharing = "none"
    color = "#a3a300"

    kernel: str = option(
        "--position-kernel", "log", "form of the decay with distance", choices=("log", "power")
    )

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return KerpleBias(shape, self.sharing, self.kernel)


class SandwichBias(RelativeBias):
    """(p_i . p_j - p_i . p_i) / (8 h / H) for head h = 1 .. H of all layers: (1, H, T, S)."""

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        device, heads = self.like.device, self.shape.heads
        angle = distances(lowest, highest, device)[:, None] * frequencies(WIDTH, device)
        product = (angle.cos() - 1).sum(-1)  # (count,)
        head = torch.arange(1, heads + 1, dtype=torch.float64, device=device)[:, None]
        return (product / (8 * head / heads)).unsqueeze(0)  # (1, H, count)


@dataclass(frozen=True)
class Sandwich(PositionEncoding):
    """Sandwich: inner products of sinusoids (Chi et al. 2022, arXiv:2212.10356):

        A[i, j] = q_i . k_j / sqrt(D) + p_i . p_j / (8 h / H)

    h = 1 .. H numbers the heads. p are sinusoids of 128 columns for every model width; p_i . p_j =
    sum_c cos((i - j) / 10000^(2 c / 128)) depends on the distance only. No parameters. Where we
    differ: p_i . p_i = 64 is subtracted, to which softmax is invariant, so that half precision
    represents the bias of near keys more precisely.
    """

    name = "sandwich"
    acts_in = SELF_ATTENTION
    color = "#c4a494"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return SandwichBias(shape)
