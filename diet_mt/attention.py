"""Scaled dot-product attention with additive offsets: one pure function."""

from __future__ import annotations

from typing import Callable, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .dropout import dropout
from .positions.base import at_least_float32

# Keys from which on torch's fused CPU kernel, which never writes the logits out, beats a batched
# product that does. Measured with 4 to 8 heads of 32 and 64 on an AMD EPYC with AVX-512, one
# thread: equal at 128, twice as fast at 256.
_FUSED_FROM = 192


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float,
    offsets: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """softmax(scale * q k^T + offsets) v, for one layer (paper, section 2.1, with the additive term
    of eq. 1 and 3).

    Args:
        q: (B, H, T, D); k: (B, H, S, D); v: (B, H, S, D).
        scale: factor of q k^T alone; offsets are never scaled.
        offsets: (B|1, H|1, T|1, S), positions and masks together, -inf where a query may not look.
            Each query needs at least one key that it may look at: the stacks see to that (see
            ``layers/padding.py``).
        dropout_p: probability with which a weight is dropped after the softmax.
        need_weights: also return the weights, before dropout, in float32 or better: (B, H, T, S).

    Returns:
        (B, H, T, D) and the weights or None.
    """
    if not need_weights and _fused_pays(q, k, offsets, dropout_p):
        return _fused(q, k, v, scale, offsets, dropout_p), None
    batch, heads, queries, _ = q.shape
    keys = k.size(2)
    logits = _logits(
        q.flatten(0, 1), k.flatten(0, 1), scale, offsets, (batch, heads, queries, keys)
    )
    # Softmax in float32 or better: in half precision its sum over S terms loses the small weights.
    weights = torch.softmax(logits, dim=-1, dtype=at_least_float32(logits.dtype))  # (B*H, T, S)
    kept = weights.to(v.dtype)
    if dropout_p > 0.0:
        kept = dropout(kept, dropout_p)
    out = torch.bmm(kept, v.flatten(0, 1)).unflatten(0, (batch, heads))  # (B, H, T, D)
    return out, weights.unflatten(0, (batch, heads)) if need_weights else None


def _logits(
    q: Tensor, k: Tensor, scale: float, offsets: Optional[Tensor], shape: Tuple[int, int, int, int]
) -> Tensor:
    """scale * q k^T + offsets as one batched product that accumulates into the offsets: (B*H, T,
    S).
    """
    batch, heads, queries, keys = shape
    if offsets is None:
        return torch.baddbmm(q.new_empty(()), q, k.transpose(1, 2), beta=0, alpha=scale)
    full = offsets.to(q.dtype).expand(shape)
    if full.is_contiguous():
        # One value per logit already. Other layers may read it too, so the sum must go elsewhere.
        return torch.baddbmm(full.flatten(0, 1), q, k.transpose(1, 2), alpha=scale)
    # The copy that repeats the offsets over batch or heads is ours alone: the product adds itself
    # onto it.
    return full.contiguous().flatten(0, 1).baddbmm_(q, k.transpose(1, 2), alpha=scale)


def _fused_pays(q: Tensor, k: Tensor, offsets: Optional[Tensor], dropout_p: float) -> bool:
    """Whether torch's fused kernel is the faster way. It always is on a GPU.

    On CPU it has no backward pass for offsets that learn and no dropout, and falls back to separate
    steps slower than ours; and over short sentences with offsets it loses to a batched product
    (``cli/benchmark.py`` measures it).
    """
    if q.is_cuda:
        return True
    learns = offsets is not None and offsets.requires_grad and torch.is_grad_enabled()
    return not learns and dropout_p == 0.0 and (offsets is None or k.size(2) >= _FUSED_FROM)


def _fused(
    q: Tensor, k: Tensor, v: Tensor, scale: float, offsets: Optional[Tensor], dropout_p: float
) -> Tensor:
    kernel: Callable[..., Tensor] = F.scaled_dot_product_attention
    mask = None if offsets is None else offsets.to(q.dtype).expand(*q.shape[:3], k.size(2))
    return kernel(q, k, v, attn_mask=mask, dropout_p=dropout_p, scale=scale)
