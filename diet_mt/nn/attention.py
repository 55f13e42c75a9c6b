"""Scaled dot-product attention with a bias and a mask: one pure function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .compiled import may_read
from .dropout import dropout
from .precision import at_least_float32, product

# Keys from which on torch's fused CPU kernel, which never writes the logits out, beats a batched
# product that does. Measured with 4 to 8 heads of 32 and 64 on an AMD EPYC with AVX-512, one
# thread: equal at 128, twice as fast at 256.
_FUSED_FROM = 192
# float32 numbers in the longest vector of a processor.
_VECTOR = 16
# Fused kernels ask for head sizes that are multiples of this, and for masks whose rows begin at
# multiples of it in memory.
_ALIGNED = 8
# Keys from which on padding beside a bias is a column of the keys there. With fewer, a mask for
# each sentence is smaller than wider copies of queries, keys and values, with heads of 64.
_COLUMN_FROM = 192

# Queries (B|1, H|1, T, R) and keys (B|1, H|1, S, R) whose product is a bias.
Factors = Tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Added:
    """What is added to the logits of one layer, never scaled.

    Attributes:
        bias: (H|1, T, S), what depends on positions alone.
        content_bias: (B, H, T, S), what depends on the words as well.
        factors: pairs whose products are added, too.
        padding: (B, S), True where nobody may look: -inf is added there, so keys must be finite;
            every row needs an open key, or its softmax is 0/0.
        causal: close the keys behind their query (T = S).
    """

    bias: Optional[Tensor] = None
    content_bias: Optional[Tensor] = None
    factors: Sequence[Factors] = ()
    padding: Optional[Tensor] = None
    causal: bool = False

    def masks(self, q: Tensor) -> List[Tensor]:
        """All but the factors, in the precision of ``q`` (B, H, T, R)."""
        parts = [
            None if self.content_bias is None else self.content_bias.to(q.dtype),
            _with_causal(self.bias, q, self.causal),
            None if self.padding is None else closed_keys(self.padding, q.dtype),
        ]
        return [part for part in parts if part is not None]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    added: Added,
    *,
    scale: float,
    output: Optional[Callable[[Tensor], Optional[Tensor]]] = None,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """softmax(scale * q k^T + bias) v, for one layer (paper, section 2.1, with the additive term of
    eq. 1 and 3).

    Bias and mask meet here, in memory that this call writes anyway: a bias serves the whole batch,
    and a mask that differs from row to row never makes a copy of it for every row.

    Args:
        q: (B, H, T, R); k: (B, H, S, R); v: (B, H, S, D).
        added: bias and mask.
        scale: factor of q k^T.
        output: weights after dropout (B, H, T, S) -> what is added to the output, or None.
        dropout_p: probability with which a weight is dropped after the softmax.
        need_weights: also return the weights, before dropout, in float32 or better: (B, H, T, S).

    Returns:
        (B, H, T, D) and the weights or None.
    """
    plain = not need_weights and output is None
    if plain and _fused_pays(q, k, (added.bias, added.content_bias), dropout_p):
        return _fused(q, k, v, added, scale, dropout_p), None
    weights = torch.softmax(
        logits(q, k, added, scale=scale).flatten(0, 1),
        dim=-1,
        # In half precision a sum over S terms loses the small weights.
        dtype=at_least_float32(q.dtype),
    )  # (B*H, T, S)
    kept = weights.to(v.dtype)
    if dropout_p > 0.0:
        kept = dropout(kept, dropout_p)
    batch, heads = q.shape[:2]
    out = torch.bmm(kept, v.flatten(0, 1)).unflatten(0, (batch, heads))  # (B, H, T, D)
    more = output(kept.unflatten(0, (batch, heads))) if output is not None else None
    out = out if more is None else out + more
    return out, weights.unflatten(0, (batch, heads)) if need_weights else None


def softmax_(logits: Tensor) -> Tensor:
    """Softmax of the last dimension, without gradients, maybe in the place of ``logits`` (..., S).

    On a CPU torch's own kernel takes numbers of a row shorter than a vector one by one: at 13 keys
    five passes over the whole are six times as fast. In half precision the sum is taken in float32.
    """
    dtype = at_least_float32(logits.dtype)
    if logits.device.type != "cpu" or logits.size(-1) >= _VECTOR or dtype != logits.dtype:
        return torch.softmax(logits, -1, dtype=dtype).to(logits.dtype)
    logits.sub_(logits.amax(-1, keepdim=True)).exp_()
    return logits.div_(logits.sum(-1, keepdim=True))


def causal_bias(length: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(T, T), -inf where the key comes after the query, 0 elsewhere."""
    return torch.full((length, length), float("-inf"), device=device, dtype=dtype).triu_(1)


def _with_causal(bias: Optional[Tensor], q: Tensor, causal: bool) -> Optional[Tensor]:
    """``bias`` (H|1, T, S) in the precision of ``q``, with the causal mask joined: one for the
    whole batch still.
    """
    bias = None if bias is None else bias.to(q.dtype)
    if not causal:
        return bias
    closed = causal_bias(q.size(2), q.device, q.dtype)
    return closed[None] if bias is None else bias + closed


def logits(q: Tensor, k: Tensor, added: Added, *, scale: float) -> Tensor:
    """What :func:`attend` takes the softmax of, for the same arguments: (B, H, T, S).

    scale * q k^T and all that is added, as one batched product that accumulates.
    """
    given = [*(product(*pair) for pair in added.factors), *added.masks(q)]
    shape = (*q.shape[:3], k.size(2))
    q, k = q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)
    if given:
        total = _summed(given, shape, q.dtype, is_ours=bool(added.factors))
        found = total.flatten(0, 1).baddbmm_(q, k, alpha=scale)
    else:
        found = torch.baddbmm(q.new_empty(()), q, k, beta=0, alpha=scale)
    return found.view(shape)


def _summed(
    parts: Sequence[Tensor], shape: Sequence[int], dtype: torch.dtype, *, is_ours: bool
) -> Tensor:
    """The sum of ``parts``, which broadcast to ``shape``, contiguous and in memory to write on.

    ``is_ours``: the first part may be written on.
    """
    first, *more = (part.to(dtype) for part in parts)
    if is_ours:
        added = first.expand(shape).contiguous()
    elif more:
        added = (first + more.pop(0)).expand(shape).contiguous()
    else:
        added = first.expand(shape).clone(memory_format=torch.contiguous_format)
    for part in more:
        added.add_(part)
    return added


def closed_keys(padding: Tensor, dtype: torch.dtype) -> Tensor:
    """(B, S), True where nobody may look -> (B, 1, 1, S), -inf there and 0 elsewhere."""
    closed = torch.zeros_like(padding, dtype=dtype).masked_fill_(padding, float("-inf"))
    return closed[:, None, None]


def _appended(
    q: Tensor, k: Tensor, scale: float, factors: Sequence[Factors]
) -> Tuple[Tensor, Tensor, float]:
    """Queries (B, H, T, R) and keys (B, H, S, R) with ``factors`` appended, as wide as fused
    kernels ask, and the factor of their product.
    """
    queries = [q * scale, *(query for query, _ in factors)]
    keys = [k, *(key for _, key in factors)]
    return _aligned(_joined(queries)), _aligned(_joined(keys)), 1.0


def _joined(parts: List[Tensor]) -> Tensor:
    """Parts (B|1, H|1, T, R) of the first one's B, H, T and precision, side by side."""
    first = parts[0]
    wide = [first, *(part.to(first.dtype).expand(*first.shape[:3], -1) for part in parts[1:])]
    return torch.cat(wide, dim=-1)


def _aligned(x: Tensor) -> Tensor:
    """``x`` (..., R) with columns of zeros up to a multiple of ``_ALIGNED``."""
    missing = -x.size(-1) % _ALIGNED
    return F.pad(x, (0, missing)) if missing else x


def _in_step(parts: Sequence[Tensor]) -> Tensor:
    """The sum of ``parts`` (B|1, H|1, T|1, S), its rows a multiple of ``_ALIGNED`` numbers apart.

    torch would see to that itself, but after the mask is expanded, with a copy for each sentence
    and head; and it does not look where the first row begins. A compiled graph does.
    """
    if torch.compiler.is_compiling():
        return sum(parts[1:], parts[0])
    keys = parts[0].size(-1)
    mask, *others = map(_aligned, parts)
    for part in others:
        mask = mask + part
    steps = *mask.stride()[:-1], mask.storage_offset()
    if mask.stride(-1) != 1 or any(step % _ALIGNED for step in steps):
        mask = mask.clone(memory_format=torch.contiguous_format)
    return mask[..., :keys]


def _fused_pays(
    q: Tensor,
    k: Tensor,
    biases: Sequence[Optional[Tensor]],
    dropout_p: float,
) -> bool:
    """Whether torch's fused kernel is faster. On a GPU and in a compiled graph it always is.

    On a CPU it has no backward pass for a bias that learns and no dropout, and falls back to
    separate steps slower than ours; and over short sentences with a bias it loses to a batched
    product. With nothing but a mask a training step of it takes half the time at any length.
    """
    if not may_read(q):
        return True
    given = [tensor for tensor in biases if tensor is not None]
    learns = any(tensor.requires_grad for tensor in given) and torch.is_grad_enabled()
    return not learns and dropout_p == 0.0 and (not given or k.size(2) >= _FUSED_FROM)


def _fused(q: Tensor, k: Tensor, v: Tensor, added: Added, scale: float, dropout_p: float) -> Tensor:
    """The kernel takes one mask, which is added to the logits."""
    kernel: Callable[..., Tensor] = F.scaled_dot_product_attention
    keys, padding, factors = k.size(2), added.padding, added.factors
    masked = added.bias is not None or added.causal
    if padding is not None and (factors or (masked and keys >= _COLUMN_FROM)):
        # As one more column of the keys, which a one in the queries meets; a large negative number,
        # since the product of -inf with 0 has no gradient.
        closed = padding.to(k.dtype)[:, None, :, None] * (torch.finfo(k.dtype).min / 4)
        factors = [*factors, (k.new_ones((1, 1, 1, 1)), closed)]
        added = replace(added, padding=None)
    # The kernel knows causality where nothing else is added.
    beside = (added.bias, added.content_bias, added.padding)
    alone = added.causal and all(part is None for part in beside)
    given = [] if alone else added.masks(q)
    mask = _in_step(given).expand(*q.shape[:3], keys) if given else None
    width = v.size(-1)
    if factors:
        q, k, scale = _appended(q, k, scale, factors)
    if q.size(-1) > width:  # the kernels want all three alike
        v = F.pad(v, (0, q.size(-1) - width))
    out = kernel(q, k, v, attn_mask=mask, is_causal=alone, dropout_p=dropout_p, scale=scale)
    return out[..., :width]
