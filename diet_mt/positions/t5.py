"""T5: per head, one scalar for each bucket of distances, added to the logits."""

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
    """``relative`` positions j - i, any shape, integers -> bucket numbers, 0 to ``buckets`` - 1.

    Both directions: half of the buckets for each, the upper half for keys behind the query (j > i).
    Causal: all buckets for keys before the query, and those behind it share that of distance 0.
    The first half of each range has a bucket for every distance, the second half buckets that grow
    with the logarithm up to ``max_distance``; the last bucket has all larger distances.
    """
    if causal:
        first, away = torch.zeros_like(relative), (-relative).clamp(min=0)
    else:
        buckets //= 2
        first, away = relative.gt(0).long() * buckets, relative.abs()
    exact = buckets // 2
    # In float32, as the models of the paper's own code were trained: other precision puts some
    # distances on the other side of a bucket's edge.
    growth = torch.log(away.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    far = exact + (growth * (buckets - exact)).long()
    return first + torch.where(away < exact, away, far.clamp(max=buckets - 1))


class T5Bias(RelativeBias):
    """b[bucket(j - i)] for all layers, (L|1, H|1, T, S); ``by_bucket`` b of one is (H|1, buckets).

    Mesh TensorFlow's deviation for embeddings of relative positions is E^-0.5; models here are
    small, and INIT_STD leaves the bias near 0 at any width.
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
    """The options of all encodings with the buckets of T5."""

    buckets: int = buckets_option(32)
    max_distance: int = option(
        "--position-max-distance", 128, "distance from which on there is one last bucket"
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
    """Raffel et al. 2019, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
    Transformer" (arXiv:1910.10683), section 2.1:

        A[i, j] = q_i . k_j / sqrt(D) + b[bucket(j - i)]

    One table for all layers by default; buckets of both directions in the encoder, of one in the
    decoder. Where we differ: T5 omits sqrt(D), and has no positions in cross-attention
    (``--position-in encoder,decoder``); here cross-attention has its own table by default, with
    buckets of both directions.
    """

    name = "t5"
    default_sharing = "layer-wise"
    color = "#e69f00"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return T5Bias(shape, self.sharing, self.buckets, self.max_distance)
