"""Scaled dot-product attention with a bias and a mask: one pure function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .compiled import is_exporting, may_read
from .dropout import dropout
from .precision import at_least_float32, product

# Number of keys from which torch's fused CPU kernel, which never stores the logits, is faster than
# a batched product. Measured with 4 to 8 heads of size 32 and 64 on an AMD EPYC with AVX-512, one
# thread: equal at 128 keys, twice as fast at 256.
_FUSED_FROM = 192
# float32 numbers in the widest vector register of a CPU (AVX-512).
_VECTOR = 16
# Fused kernels require head sizes that are multiples of this, and masks whose rows start at
# multiples of it in memory.
_ALIGNED = 8
# Number of keys from which key padding combined with a bias becomes a column of the keys. With
# fewer, a mask per sentence is smaller than wider queries, keys and values (at head size 64).
_COLUMN_FROM = 192

# F_Q (H|1, T, R) and F_K (H|1, S, R), or with a dimension B|1 in front; F_Q F_K^T is a bias.
Factors = Tuple[Tensor, Tensor]


@dataclass(frozen=True)
class LogitTerms:
    """Terms added to the logits of one layer after scaling.

    Attributes:
        bias: (H|1, T, S), depends on positions only.
        content_bias: (B|1, H|1, T|1, S), depends on tokens as well.
        factors: pairs whose products are added.
        key_padding: (B, S), True at padding. -inf is added there, so keys must be finite, and no
            row may be padding only: its softmax would be 0/0.
        causal: mask keys after their query (T = S).
    """

    bias: Optional[Tensor] = None
    content_bias: Optional[Tensor] = None
    factors: Sequence[Factors] = ()
    key_padding: Optional[Tensor] = None
    causal: bool = False

    def biases(self, q: Tensor) -> List[Tensor]:
        """All terms except ``factors``, in the precision of ``q`` (B, H, T, D_k)."""
        parts = [
            None if self.content_bias is None else self.content_bias.to(q.dtype),
            _with_causal(self.bias, q, self.causal),
            None if self.key_padding is None else key_padding_bias(self.key_padding, q.dtype),
        ]
        return [part for part in parts if part is not None]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    terms: LogitTerms,
    *,
    scale: float,
    output: Optional[Callable[[Tensor], Optional[Tensor]]] = None,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """softmax(scale * q k^T + terms) v, for one layer.

    Paper, section 2.1, with the additive term of eq. 1 and 3. A bias serves the whole batch.
    Without the fused kernel, all terms are summed in the memory of the logits.

    Args:
        q: (B, H, T, D_k); k: (B, H, S, D_k); v: (B, H, S, D).
        terms: bias and mask.
        scale: factor of q k^T.
        output: weights after dropout (B, H, T, S) -> a term of the output, or None.
        dropout_p: probability of dropping a weight, after the softmax.
        need_weights: also return the weights, before dropout, in float32 or better: (B, H, T, S).

    Returns:
        (B, H, T, D) and the weights or None.
    """
    plain = not need_weights and output is None
    if plain and _fused_pays(q, k, (terms.bias, terms.content_bias), dropout_p):
        return _fused(q, k, v, terms, scale, dropout_p), None
    weights = _softmax(logits(q, k, terms, scale=scale).flatten(0, 1))  # (B*H, T, S)
    used = weights.to(v.dtype)
    if dropout_p > 0.0:
        used = dropout(used, dropout_p)
    batch, heads = q.shape[:2]
    out = torch.bmm(used, v.flatten(0, 1)).unflatten(0, (batch, heads))  # (B, H, T, D)
    more = output(used.unflatten(0, (batch, heads))) if output is not None else None
    out = out if more is None else out + more
    return out, weights.unflatten(0, (batch, heads)) if need_weights else None


def logits(q: Tensor, k: Tensor, terms: LogitTerms, *, scale: float) -> Tensor:
    """Logits of :func:`attend` for the same arguments, scale * q k^T + terms: (B, H, T, S).

    One batched product, added to the sum of the terms in place.
    """
    parts = [*(product(*pair) for pair in terms.factors), *terms.biases(q)]
    shape = (*q.shape[:3], k.size(2))
    q, k = q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)
    if parts:
        total = _summed(parts, shape, q.dtype, writable=bool(terms.factors))
        return total.flatten(0, 1).baddbmm_(q, k, alpha=scale).view(shape)
    return torch.baddbmm(q.new_empty(()), q, k, beta=0, alpha=scale).view(shape)


def _softmax(logits: Tensor) -> Tensor:
    """Softmax over the last dimension in float32 or better; may overwrite ``logits``.

    In half precision, sums over many keys lose small weights. On a CPU, torch's kernel handles
    rows shorter than a vector register number by number: at 13 keys, five passes over the whole
    tensor are six times as fast.
    """
    dtype = at_least_float32(logits.dtype)
    short = may_read(logits) and logits.size(-1) < _VECTOR and dtype == logits.dtype
    if torch.is_grad_enabled() or not short:
        return torch.softmax(logits, -1, dtype=dtype)
    logits.sub_(logits.amax(-1, keepdim=True)).exp_()
    return logits.div_(logits.sum(-1, keepdim=True))


def key_padding_bias(key_padding: Tensor, dtype: torch.dtype) -> Tensor:
    """``key_padding`` (B, S), True at padding -> (B, 1, 1, S), -inf at padding and 0 elsewhere.

    A large negative number replaces -inf in exported programs: some runtimes multiply it by 0.
    """
    lowest = torch.finfo(dtype).min / 4 if is_exporting() else float("-inf")
    bias = torch.zeros_like(key_padding, dtype=dtype).masked_fill_(key_padding, lowest)
    return bias[:, None, None]


def _with_causal(bias: Optional[Tensor], q: Tensor, causal: bool) -> Optional[Tensor]:
    """``bias`` (H|1, T, S) or None plus, if ``causal``, the mask, in the precision of ``q``."""
    bias = None if bias is None else bias.to(q.dtype)
    if not causal:
        return bias
    # (T, T): -inf where the key comes after the query.
    future = q.new_full((q.size(2), q.size(2)), float("-inf")).triu_(1)
    return future[None] if bias is None else bias + future


def _summed(
    parts: Sequence[Tensor], shape: Sequence[int], dtype: torch.dtype, *, writable: bool
) -> Tensor:
    """Contiguous sum of ``parts`` in ``shape``; may overwrite a ``writable`` first part."""
    first, *more = (part.to(dtype) for part in parts)
    if writable:
        total = first.expand(shape).contiguous()
    elif more:
        total = (first + more.pop(0)).expand(shape).contiguous()
    else:
        total = first.expand(shape).clone(memory_format=torch.contiguous_format)
    for part in more:
        total.add_(part)
    return total


def _appended(
    q: Tensor, k: Tensor, scale: float, factors: Sequence[Factors]
) -> Tuple[Tensor, Tensor, float]:
    """Scaled queries (B, H, T, N) and keys (B, H, S, N) with ``factors`` appended; and scale 1."""
    queries = [q * scale, *(query for query, _ in factors)]
    keys = [k, *(key for _, key in factors)]
    return _aligned(_joined(queries)), _aligned(_joined(keys)), 1.0


def _joined(parts: List[Tensor]) -> Tensor:
    """``parts`` side by side, with the B, H, T and precision of the first (B, H, T, D_k)."""
    first = parts[0]
    wide = [first, *(part.to(first.dtype).expand(*first.shape[:3], -1) for part in parts[1:])]
    return torch.cat(wide, dim=-1)


def _aligned(x: Tensor) -> Tensor:
    """``x`` (..., N) padded with zeros to a multiple of ``_ALIGNED`` columns."""
    missing = -x.size(-1) % _ALIGNED
    return F.pad(x, (0, missing)) if missing else x


def _in_step(parts: Sequence[Tensor]) -> Tensor:
    """Sum of ``parts`` (B|1, H|1, T|1, S), with rows that start at multiples of ``_ALIGNED``.

    torch would align the mask only after expanding it, with a copy for each sentence and head, and
    would ignore the start of the first row. A compiled graph aligns masks itself.
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


def _fused_pays(q: Tensor, k: Tensor, biases: Sequence[Optional[Tensor]], dropout_p: float) -> bool:
    """Whether torch's fused kernel is faster: always on a GPU and in a compiled graph.

    Exported programs do without it, because the fused path branches on sizes. On a CPU, it has no
    gradients of a bias and no dropout: it falls back to separate operators, slower than ours. With
    a bias over short sentences, it is slower than a batched product. With masks only, a training
    step takes half the time at any length.
    """
    if not may_read(q):
        return not is_exporting()
    present = [tensor for tensor in biases if tensor is not None]
    learns = any(tensor.requires_grad for tensor in present) and torch.is_grad_enabled()
    return not learns and dropout_p == 0.0 and (not present or k.size(2) >= _FUSED_FROM)


def _fused(
    q: Tensor, k: Tensor, v: Tensor, terms: LogitTerms, scale: float, dropout_p: float
) -> Tensor:
    """:func:`attend` by torch's fused kernel, which adds one mask to the logits."""
    kernel: Callable[..., Tensor] = F.scaled_dot_product_attention
    keys, padding, factors = k.size(2), terms.key_padding, terms.factors
    masked = terms.bias is not None or terms.causal
    if padding is not None and (factors or (masked and keys >= _COLUMN_FROM)):
        # One more column of the keys, multiplied by 1 in the queries. It has a large negative
        # number at padding, since a product of -inf with 0 would make gradients NaN.
        column = padding.to(k.dtype)[:, None, :, None] * (torch.finfo(k.dtype).min / 4)
        factors = [*factors, (k.new_ones((1, 1, 1, 1)), column)]
        terms = replace(terms, key_padding=None)
    others = (terms.bias, terms.content_bias, terms.key_padding)
    is_causal = terms.causal and all(part is None for part in others)  # masked by the kernel itself
    parts = [] if is_causal else terms.biases(q)
    mask = _in_step(parts).expand(*q.shape[:3], keys) if parts else None
    width = v.size(-1)
    if factors:
        q, k, scale = _appended(q, k, scale, factors)
    if q.size(-1) > width:  # kernels require one width of all three
        v = F.pad(v, (0, q.size(-1) - width))
    out = kernel(q, k, v, attn_mask=mask, is_causal=is_causal, dropout_p=dropout_p, scale=scale)
    return out[..., :width]
