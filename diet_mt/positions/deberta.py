"""DeBERTa: attention of content to relative position, and of position to content."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..nn.precision import at_least_float32, no_autocast
from ..system.errors import UserError
from .base import (
    SELF_ATTENTION,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
    normal,
    projections,
)
from .options import buckets_option, clip_option, flag_option
from .relative import ClippedPositions, ClippedTerms, gather_indexed, gather_relative
from .terms import PositionTerms


@dataclass(frozen=True, kw_only=True)
class DebertaTerms(ClippedTerms):
    """K^r, ``of_keys``, and Q^r, ``of_queries``, by clipped j - i: (H|1, 2c+1, D) each."""

    of_queries: Tensor

    @property
    def reads_keys(self) -> bool:
        return True

    def key_bias(self, k: Tensor, scale: float, key_positions: Tensor | None = None) -> Tensor:
        if key_positions is None and self.rows is None and self.query_len == 1:
            return self._of_one_query(k, scale)
        products = (k * scale) @ self.of_queries.to(k.dtype).transpose(-1, -2)  # (B, H, S, 2c+1)
        if key_positions is not None:
            rows = self._rows(key_positions) if self.rows is None else self.rows[0][key_positions]
            rows = rows[:, None, :, None].expand(*products.shape[:-1], 1)
            return products.gather(3, rows).transpose(-1, -2)  # (B, H, 1, S)
        if self.rows is not None:
            return gather_indexed(products, self.rows.t()).transpose(-1, -2)
        # Keys are the rows here, expanded to all queries by i - j; so the columns are flipped.
        by_query = gather_relative(products.flip(-1), self.query_len, -self.query_start)
        return by_query.transpose(-1, -2)

    def _rows(self, key_positions: Tensor) -> Tensor:
        """Rows of Q^r for keys at these positions and a single query."""
        clip = self.of_queries.size(1) // 2
        return (key_positions - self.query_start).clamp(-clip, clip) + clip

    def _of_one_query(self, k: Tensor, scale: float) -> Tensor:
        """Bias (B, H, 1, S) with one product per key, instead of one with each row of Q^r."""
        heads, keys, size = k.shape[1:]
        rows = self._rows(torch.arange(keys, device=k.device))
        vectors = self.of_queries[:, rows].to(k.dtype) * scale  # (H|1, S, D)
        vectors = vectors.expand(heads, -1, -1)
        # The compiled search has keys in the layout (B, S, H, D), so this copies none.
        by_key = k.permute(2, 1, 0, 3).flatten(0, 1)  # (S H, B, D)
        products = by_key @ vectors.transpose(0, 1).reshape(-1, size, 1)
        return products.view(keys, heads, -1).permute(2, 1, 0).unsqueeze(2)  # (B, H, 1, S)


class DebertaPositions(ClippedPositions):
    """P (2k, E), one for all layers and heads, and its projections.

    ``rows``: (2c+1,), the rows of P for j - i from -c to c.
    """

    rows: Tensor

    def __init__(self, shape: AttentionShape, sharing: str | None, encoding: Deberta) -> None:
        table = None if encoding.shared_projections else partial(projections, shape=shape)
        super().__init__(shape, sharing, table)
        self.clip, size = encoding.clip, encoding.buckets or encoding.clip
        buckets = map(encoding.bucket, range(self.clip, -self.clip - 1, -1))  # by i - j
        rows = torch.tensor([min(max(bucket + size, 0), 2 * size - 1) for bucket in buckets])
        self.register_buffer("rows", rows, persistent=False)
        self.relative = nn.Parameter(normal((2 * size, shape.embed_dim)))

    def terms_up_to(self, furthest: int, **queries: Any) -> list[PositionTerms]:
        rows = self.rows[self.clip - furthest : self.clip + furthest + 1]
        vectors = self.relative[rows].to(at_least_float32(self.relative.dtype))  # (2c+1, E)
        with no_autocast(vectors.device):
            of_keys, of_queries = (self._projected(vectors, name) for name in ("key", "query"))
        pairs = zip(of_keys.unbind(0), of_queries.unbind(0), strict=True)
        return [DebertaTerms(of_keys=key, of_queries=query, **queries) for key, query in pairs]

    def _projected(self, vectors: Tensor, name: str) -> Tensor:
        """The projections ``name`` of ``vectors`` (2c+1, E): (L|1, H|1, 2c+1, D)."""
        if self.tables():
            return vectors @ self.stacked(name)
        count = self.shape.layers - len(self.shape.skipped)
        if len(self.attention) != count:
            raise UserError(
                f"--position-shared-projections: `attention` has {len(self.attention)} modules with"
                f" q_proj and k_proj, for {count} layers"
            )
        layers = [getattr(module, f"{name[0]}_proj") for module in self.attention]
        rows = torch.stack([layer(vectors.to(self.like.dtype)) for layer in layers])  # (L, 2c+1, E)
        by_head: Tensor = rows.unflatten(-1, (self.shape.heads, -1)).transpose(1, 2)
        return by_head


@dataclass(frozen=True)
class Deberta(PositionEncoding):
    """DeBERTa: disentangled attention (He et al. 2020, arXiv:2006.03654, section 3.1, equation 4):

        A[i, j] = (q_i . k_j + q_i . K^r[d(i, j)] + k_j . Q^r[d(i, j)]) / sqrt(3 D)

    K^r = P W_k,r and Q^r = P W_q,r. P has 2k rows for all layers and heads; d(i, j) = i - j + k,
    clipped to 0 and 2k - 1; k (``--position-clip``) is 512 as in the paper. There are no positions
    in cross-attention, where target and source positions have no distance.

    Where we differ: the paper prints Q^r[d(j, i)]; the authors' code, which computed its results,
    and ``transformers`` use d(i, j) in both terms, and so do we. In their code the projection to
    Q^r has a bias, here it has none. The paper has encoders only; here the decoder's self-attention
    has its own P and projections. Absolute positions before the output layer of a masked language
    model, the paper's second part, are not implemented.

    Versions 2 and 3 (arXiv:2111.09543, and the authors' code) have k buckets in each direction
    (``--position-buckets 256``): one per distance up to k/2, then logarithmic ones up to distance
    512. They project P by W_k and W_q of the content in each layer, including the biases
    (``--position-shared-projections``). Their layer norm of P, and the convolution of version 2,
    are not implemented.
    """

    name = "deberta"
    acts_in = SELF_ATTENTION
    default_sharing = "none"
    content_scale = 3**-0.5
    color = "#ff8f80"

    clip: int = clip_option(512)
    buckets: int | None = buckets_option(None)
    shared_projections: bool | None = flag_option(
        "--position-shared-projections", "project positions by the W_q and W_k of the tokens"
    )

    def __post_init__(self) -> None:
        if self.shared_projections:
            object.__setattr__(self, "default_sharing", None)
        super().__post_init__()

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        most = 2 * self.clip - 4
        if self.buckets is not None and (self.buckets % 2 or not 2 <= self.buckets <= most):
            clip = f"--position-clip {self.clip}"
            yield f"--position-buckets {self.buckets}: must be even, 2 to {most} with {clip}"

    def bucket(self, distance: int) -> int:
        """Signed bucket of i - j (``make_log_bucket_position`` in the authors' code)."""
        away, near = abs(distance), (self.buckets or 2 * self.clip) // 2
        if away <= near:
            return distance
        growth = math.log(away / near) / math.log((self.clip - 1) / near)
        return int(math.copysign(near + math.ceil(growth * (near - 1)), distance))

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return DebertaPositions(shape, self.sharing, self)
