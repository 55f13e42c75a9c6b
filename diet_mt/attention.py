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


def causal_offsets(length: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(T, T), -inf where the key comes after the query."""
    return torch.full((length, length), float("-inf"), device=device, dtype=dtype).triu_(1)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float,
    offsets: Optional[Tensor] = None,
    content: Optional[Tensor] = None,
    causal: bool = False,
    mix: Callable[[Tensor], Optional[Tensor]] = lambda weights: None,
    mixes: bool = False,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """softmax(scale * q k^T + offsets + content) v, for one layer (paper, section 2.1, with the
    additive term of eq. 1 and 3).

    Args:
        q: (B, H, T, D'); k: (B, H, S, D'); v: (B, H, S, D), D at most D'.
        scale: factor of q k^T alone; offsets are never scaled.
        offsets: (B|1, H|1, T|1, S), positions and masks together, -inf where a query may not look.
            Each query needs at least one key that it may look at: the stacks see to that (see
            ``layers/padding.py``).
        content: (B, H, T, S), what else is added: what depends on the words.
        causal: hide keys behind their query (T = S); the same as offsets that say so.
        mix: weights after dropout (B, H, T, S) -> what is added to the output, or None. Called
            only with ``mixes``.
        dropout_p: probability with which a weight is dropped after the softmax.
        need_weights: also return the weights, before dropout, in float32 or better: (B, H, T, S).

    Returns:
        (B, H, T, D) and the weights or None.
    """
    if not need_weights and not mixes and _fused_pays(q, k, offsets, content, dropout_p):
        alone = causal and offsets is None and content is None  # the kernel knows causality
        added = None if alone else _sum(q, offsets, content, causal)
        return _fused(q, k, v, scale, added, alone, dropout_p), None
    batch, heads, queries, _ = q.shape
    keys = k.size(2)
    logits = _logits(q, k, scale, _sum(q, offsets, content, causal))
    # Softmax in float32 or better: in half precision its sum over S terms loses the small weights.
    weights = torch.softmax(logits, dim=-1, dtype=at_least_float32(logits.dtype))  # (B*H, T, S)
    kept = weights.to(v.dtype)
    if dropout_p > 0.0:
        kept = dropout(kept, dropout_p)
    out = torch.bmm(kept, v.flatten(0, 1)).unflatten(0, (batch, heads))  # (B, H, T, D)
    mixed = mix(kept.unflatten(0, (batch, heads))) if mixes else None
    out = out if mixed is None else out + mixed
    return out, weights.view(batch, heads, queries, keys) if need_weights else None


def _sum(
    q: Tensor, offsets: Optional[Tensor], content: Optional[Tensor], causal: bool
) -> Optional[Tensor]:
    """All that is added to the logits of ``q`` (B, H, T, D'), in its precision: (B|1, H|1, T|1, S),
    (T, S), or None.
    """
    parts = [part.to(q.dtype) for part in (offsets, content) if part is not None]
    if causal:
        parts.append(causal_offsets(q.size(2), q.device, q.dtype))
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _logits(q: Tensor, k: Tensor, scale: float, added: Optional[Tensor]) -> Tensor:
    """scale * q k^T + added as one batched product that accumulates: (B*H, T, S)."""
    shape = (*q.shape[:3], k.size(2))
    q, k = q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)
    if added is None:
        return torch.baddbmm(q.new_empty(()), q, k, beta=0, alpha=scale)
    full = added.expand(shape)
    if full.is_contiguous():
        # One value per logit already. Other layers may read it too, so the sum must go elsewhere.
        return torch.baddbmm(full.flatten(0, 1), q, k, alpha=scale)
    # The copy that repeats what is added over batch or heads is ours alone: the product adds itself
    # onto it.
    return full.contiguous().flatten(0, 1).baddbmm_(q, k, alpha=scale)


def _fused_pays(
    q: Tensor, k: Tensor, offsets: Optional[Tensor], content: Optional[Tensor], dropout_p: float
) -> bool:
    """Whether torch's fused kernel is the faster way. It always is on a GPU.

    On CPU it has no backward pass for offsets that learn and no dropout, and falls back to separate
    steps slower than ours; and over short sentences with offsets it loses to a batched product
    (``cli/benchmark.py`` measures it).
    """
    if q.is_cuda:
        return True
    added = [tensor for tensor in (offsets, content) if tensor is not None]
    learns = any(tensor.requires_grad for tensor in added) and torch.is_grad_enabled()
    return not learns and dropout_p == 0.0 and (not added or k.size(2) >= _FUSED_FROM)


def _fused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    added: Optional[Tensor],
    causal: bool,
    dropout_p: float,
) -> Tensor:
    kernel: Callable[..., Tensor] = F.scaled_dot_product_attention
    mask = None if added is None else added.expand(*q.shape[:3], k.size(2))
    width = v.size(-1)
    if q.size(-1) > width:  # the kernels want all three alike
        v = F.pad(v, (0, q.size(-1) - width))
    out = kernel(q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout_p, scale=scale)
    return out[..., :width]
