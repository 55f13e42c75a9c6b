"""DeBERTa: words look for positions, and positions for words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, List, Optional, Tuple

import torch
from torch import Tensor, nn

from .base import (
    DECODER,
    ENCODER,
    INIT_STD,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
    at_least_float32,
    no_autocast,
)
from .clipped import ClippedLayer, ClippedPositions, clip_option, pick, spread
from .layer import LayerPositions
from .projections import Projections


@dataclass(frozen=True)
class DebertaLayer(ClippedLayer):
    """``of_keys`` K^r and ``of_queries`` Q^r, (H|1, 2c+1, D) each."""

    of_queries: Optional[Tensor] = None

    @property
    def reads_keys(self) -> bool:
        return True

    def key_bias(self, k: Tensor, scale: float, key_positions: Optional[Tensor] = None) -> Tensor:
        assert self.of_queries is not None
        if key_positions is None and self.rows is None and self.query_len == 1:
            return self._of_one_query(k, scale)
        products = (k * scale) @ self.of_queries.to(k.dtype).transpose(-1, -2)  # (B, H, S, 2c+1)
        if key_positions is not None:
            rows = self._met(key_positions) if self.rows is None else self.rows[0][key_positions]
            rows = rows[:, None, :, None].expand(*products.shape[:-1], 1)
            return products.gather(3, rows).transpose(-1, -2)  # (B, H, 1, S)
        if self.rows is not None:
            return pick(products, self.rows.t()).transpose(-1, -2)
        # Keys are rows here, and queries what each row is spread over: by i - j.
        return spread(products.flip(-1), self.query_len, -self.query_start).transpose(-1, -2)

    def _met(self, key_positions: Tensor) -> Tensor:
        """Rows of Q^r that keys there meet, of the one query."""
        assert self.of_queries is not None
        clip = self.of_queries.size(1) // 2
        return (key_positions - self.query_start).clamp(-clip, clip) + clip

    def _of_one_query(self, k: Tensor, scale: float) -> Tensor:
        """A key meets one vector of 2c+1 then; all would be 2c+1 times the work."""
        assert self.of_queries is not None
        heads, keys, size = k.shape[1:]
        rows = self._met(torch.arange(keys, device=k.device))
        met = self.of_queries[:, rows].to(k.dtype) * scale  # (H|1, S, D)
        met = met.expand(heads, -1, -1)
        # The compiled search keeps keys as (B, S, H, D), so there this copies none.
        by_key = k.permute(2, 1, 0, 3).flatten(0, 1)  # (S H, B, D)
        products = by_key @ met.transpose(0, 1).reshape(-1, size, 1)
        return products.view(keys, heads, -1).permute(2, 1, 0).unsqueeze(2)  # (B, H, 1, S)


class DebertaPositions(ClippedPositions):
    """P (2k, E), one for all layers and heads, and their projections; row i - j + k for i - j."""

    def __init__(self, shape: AttentionShape, sharing: Optional[str], clip: int) -> None:
        super().__init__(shape, sharing, lambda heads: Projections(heads, shape))
        self.clip = clip
        self.relative = nn.Parameter(torch.empty(2 * clip, shape.embed_dim))
        nn.init.normal_(self.relative, std=INIT_STD)

    def up_to(self, furthest: int, **where: Any) -> List[LayerPositions]:
        vectors = self.by_distance(furthest)  # (2c+1, E)
        with no_autocast(vectors.device):
            of_keys, of_queries = (vectors @ self.stacked(name) for name in ("key", "query"))
        pairs = zip(of_keys.unbind(0), of_queries.unbind(0), strict=True)
        return [DebertaLayer(of_keys=keys, of_queries=own, **where) for keys, own in pairs]

    def by_distance(self, furthest: int) -> Tensor:
        """Rows of P for j - i from ``-furthest`` to ``furthest``, in float32 or better."""
        distance = torch.arange(furthest, -furthest - 1, -1, device=self.relative.device)  # i - j
        row = (distance + self.clip).clamp(max=2 * self.clip - 1)
        return self.relative[row].to(at_least_float32(self.relative.dtype))


@dataclass(frozen=True)
class Deberta(PositionEncoding):
    """He et al. 2020, "DeBERTa: Decoding-enhanced BERT with Disentangled Attention"
    (arXiv:2006.03654), section 3.1, equation 4:

        A[i, j] = (q_i . k_j + q_i . K^r[d(i, j)] + k_j . Q^r[d(i, j)]) / sqrt(3 D)

    K^r = P W_k,r and Q^r = P W_q,r; P has 2k rows for all layers and heads, d(i, j) = i - j + k,
    kept within 0 and 2k - 1, and k is 512 as in the paper (``--position-clip``). Nothing in
    cross-attention, where target and source positions have no distance. Where we differ: the print
    has Q^r[d(j, i)]; the authors' code, which made its results, and ``transformers`` read d(i, j)
    in both terms, and so do we. The paper has encoders only; the decoder's self-attention has a P
    and projections of its own. Their code adds a number to every column of Q^r, which no position
    changes. The paper's second part, absolute positions before the output layer of a masked
    language model, is not here.
    """

    name: ClassVar[str] = "deberta"
    acts_in: ClassVar[Tuple[str, ...]] = (ENCODER, DECODER)
    default_sharing: ClassVar[Optional[str]] = "none"
    content_scale: ClassVar[float] = 3**-0.5

    clip: int = clip_option(512)

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return DebertaPositions(shape, self.sharing, self.clip)
