"""T5: one scalar for each bucket of distances and head, added to the logits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .base import DECODER, AttentionPositions, AttentionShape, PositionEncoding, Table, normal
from .options import buckets_option, option
from .relative import RelativeBias, distances


def buckets_of(relative: Tensor, buckets: int, max_distance: int, *, causal: bool) -> Tensor:
    """Bucket numbers, 0 to ``buckets`` - 1, of ``relative`` positions j - i, integers of any shape.

    Bidirectional: half of the buckets per direction, the upper half for keys after the query (j >
    i). Causal: all buckets are for keys before the query; keys after it share that of distance 0.
    In each direction, the first half of the buckets has one distance each, the second half is
    logarithmic up to ``max_distance``; the last bucket includes all larger distances.
    """
    if causal:
        first, away = torch.zeros_like(relative), (-relative).clamp(min=0)
    else:
        buckets //= 2
        first, away = relative.gt(0).long() * buckets, relative.abs()
    exact = buckets // 2
    # In float32, as in the paper's own code: in another precision, some distances would fall into
    # the neighboring bucket.
    growth = torch.log(away.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    far = exact + (growth * (buckets - exact)).long()
    return first + torch.where(away < exact, away, far.clamp(max=buckets - 1))


class T5Bias(RelativeBias):
    """b[bucket(j - i)] in all layers: (L|1, H|1, T, S).

    A layer has b, ``by_bucket`` (H|1, buckets). It starts with standard deviation INIT_STD, near 0
    at any width, instead of Mesh TensorFlow's E^-0.5, since models here are small.
    """

    def __init__(
        self, shape: AttentionShape, sharing: str | None, buckets: int, max_distance: int
    ) -> None:
        super().__init__(shape, sharing, lambda heads: Table(by_bucket=normal((heads, buckets))))
        self.buckets = buckets
        self.max_distance = max_distance

    def by_distance(self, lowest: int, highest: int) -> Tensor:
        table = self.stacked("by_bucket")
        relative = -distances(lowest, highest, table.device)
        causal = self.shape.kind == DECODER
        number = buckets_of(relative, self.buckets, self.max_distance, causal=causal)
        return table[..., number]


@dataclass(frozen=True)
class Bucketed(PositionEncoding):
    """The options of encodings with the buckets of T5."""

    buckets: int = buckets_option(32)
    max_distance: int = option(
        "--position-max-distance", 128, "distance from which all fall into the last bucket"
    )

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.buckets >= 1 and (self.buckets < 4 or self.buckets % 2):
            yield f"--position-buckets {self.buckets}: must be even, and at least 4"
        elif 1 <= self.max_distance <= self.buckets // 2:
            yield (
                f"--position-max-distance {self.max_distance}: must be more than "
                f"{self.buckets // 2}, half of --position-buckets"
            )


@dataclass(frozen=True)
class T5(Bucketed):
    """T5: a scalar per bucket of distances (Raffel et al. 2019, arXiv:1910.10683, section 2.1):

        A[i, j] = q_i . k_j / sqrt(D) + b[bucket(j - i)]

    By default, all layers share one table. Buckets are bidirectional in the encoder, causal in the
    decoder. Where we differ: T5 omits sqrt(D), and has no positions in cross-attention
    (``--position-in encoder,decoder``); here cross-attention has its own table by default, with
    bidirectional buckets.
    """

    name = "t5"
    default_sharing = "layer-wise"
    color = "#e69f00"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return T5Bias(shape, self.sharing, self.buckets, self.max_distance)
