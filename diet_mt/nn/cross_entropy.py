"""Label-smoothed cross-entropy that never stores all logits.

fairseq's ``label_smoothed_nll_loss`` stores log-probabilities (N, V), sums them and picks one per
row, and its backward pass fills three more tensors of that size. Here loss and gradient are
computed from blocks of rows that fit the processor's cache:

    nll_i    = lse_i - l_i[t_i],                        lse_i = log sum_v exp(l_i[v])
    smooth_i = V lse_i - sum_v l_i[v]
    loss     = sum_i (1 - eps - eps_v) nll_i + eps_v smooth_i,     eps_v = eps / (V - 1)

over the rows i whose target t_i is not padding. In the gradient, the factors of p = softmax(l) sum
to 1:

    d loss / d l_i[v] = p_i[v] - (1 - eps - eps_v) [v = t_i] - eps_v
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .compiled import compiled, may_read
from .linear import add_product, product
from .precision import at_least_float32

# Logits of a block, 4 MiB in float32, which fit a core's caches; but at least _ROWS rows, since
# each block reads the whole weight and adds to its whole gradient. Measured on one core of an Intel
# Xeon with AVX-512: at V = 6,040, 170 to 350 rows are equally fast and 43 take a quarter longer; at
# V = 32,000, 130 rows take half the time of 16.
_LOGITS = 1 << 20
_ROWS = 192
# On other devices, where a block has to occupy the whole device: 512 MiB in float32.
_LOGITS_ON_DEVICE = 1 << 27
# Gradients are stored multiplied by this until the backward pass scales them: most probabilities
# are too small for float16.
_GAIN = {torch.float16: 1024.0}
# Probabilities below this are too inexact in float32 for a logarithm.
_TINY = 1e-30


def from_features(
    features: Tensor,
    weight: Tensor,
    targets: Tensor,
    eps: float,
    pad: int,
    *,
    compile_blocks: bool = False,
) -> Tuple[Tensor, Tensor]:
    """Sums of the smoothed loss and of -log p(target), for logits ``features @ weight.t()``.

    Both are scalars in float32 or better; only the first has a gradient. Logits exist for a block
    of rows at a time: its gradients are computed with its loss, and the backward pass scales them.

    Args:
        features: (N, E); weight: (V, E); targets: (N,).
        eps: weight of the uniform distribution over the V - 1 words other than the target.
        pad: target of the rows that are left out.
        compile_blocks: fuse the passes over a block, on devices other than a CPU.
    """
    loss, nll = _FromFeatures.apply(features, weight, targets, eps, pad, compile_blocks)
    return loss, nll


def serves(weight: Tensor) -> bool:
    """Whether :func:`from_features` supports the device and precision of ``weight``.

    The gradient of a float16 weight requires products summed in float32 (torch 2.8, CUDA).
    """
    if weight.device.type == "cpu":
        return weight.dtype in (torch.float32, torch.float64)
    return weight.dtype != torch.float16 or hasattr(torch.ops.aten.mm, "dtype")


def _blocks(rows: int, vocabulary: int, on_cpu: bool) -> range:
    """First rows of the blocks; the step is the number of rows of a block."""
    logits = _LOGITS if on_cpu else _LOGITS_ON_DEVICE
    return range(0, rows, max(_ROWS, logits // vocabulary))


class _FromFeatures(torch.autograd.Function):
    """Autograd function of :func:`from_features`; its forward pass computes the gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        targets: Tensor,
        eps: float,
        pad: int,
        compile_blocks: bool,
    ) -> Tuple[Tensor, Tensor]:
        real, targets = targets.ne(pad).unsqueeze(1), targets.unsqueeze(1)  # (N, 1)
        rows: Optional[Tensor] = None  # of real tokens, unless all are
        if not may_read(features):
            x = features.masked_fill(~real, 0.0)
        elif bool(real.all()):
            x = features.contiguous()
        else:
            rows = real.squeeze(1).nonzero().squeeze(1)
            x, targets, real = (each.index_select(0, rows) for each in (features, targets, real))
        loss, nll, dx, dw = _loss_and_gradients(
            x, weight, targets, real, eps, ctx.needs_input_grad[:2], compile_blocks
        )
        if dx is not None and rows is not None:
            dx = torch.zeros_like(features).index_copy_(0, rows, dx)
        ctx.save_for_backward(dx, dw)
        ctx.gain, ctx.dtype = _GAIN.get(weight.dtype, 1.0), weight.dtype
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor, _: Tensor) -> Tuple[Optional[Tensor], ...]:
        scaled = [
            None if gradient is None else (gradient * (factor / ctx.gain)).to(ctx.dtype)
            for gradient in ctx.saved_tensors
        ]
        return (*scaled, None, None, None, None)


def _loss_and_gradients(
    x: Tensor,
    weight: Tensor,
    targets: Tensor,
    real: Tensor,
    eps: float,
    needed: Tuple[bool, ...],
    compile_blocks: bool,
) -> Tuple[Tensor, Tensor, Optional[Tensor], Optional[Tensor]]:
    """Loss, sum of -log p(target), and the gradients (N, E) and (V, E) times ``_GAIN``, or None.

    ``x`` (N, E), ``weight`` (V, E), ``targets`` and ``real`` (N, 1). ``x`` is 0 in rows that are
    not ``real``; on a CPU there are none. ``needed``: whether to compute the gradients of ``x`` and
    ``weight``. Their term ``eps_v`` and the sum of all logits in the loss are computed from the
    sums of ``x`` and ``weight``, without a pass over a block.
    """
    vocabulary, dtype = weight.size(0), at_least_float32(weight.dtype)
    share, gain = eps / (vocabulary - 1), _GAIN.get(weight.dtype, 1.0)
    at_target, on_cpu = 1.0 - eps - share, may_read(x)
    x_sum, weight_sum = x.sum(0, dtype=dtype), weight.sum(0, dtype=dtype)  # (E,)
    dx = torch.empty_like(x) if needed[0] else None
    dw = (x_sum * (-share * gain)).expand_as(weight).clone() if needed[1] else None
    sums = x.new_zeros(2, dtype=torch.float64)
    masked_block = compiled(_masked_block) if compile_blocks and not on_cpu else _masked_block
    blocks = _blocks(x.size(0), vocabulary, on_cpu)
    for start in blocks:
        part = slice(start, start + blocks.step)
        logits, target = product(x[part], weight), targets[part]
        if on_cpu:
            block_sums, p = _block(logits, target, at_target)
        else:
            block_sums, p = masked_block(logits, target, real[part], at_target, gain)
        sums += block_sums
        if dx is not None:
            torch.sub(product(p, weight.t()), weight_sum, alpha=share * gain, out=dx[part])
        if dw is not None:
            add_product(dw, p, x[part])
    if dx is not None and not on_cpu:
        dx *= real
    nll, lse_sum = sums.unbind(0)
    smooth = vocabulary * lse_sum - x_sum.double() @ weight_sum.double()
    loss = at_target * nll + share * smooth
    return loss.to(dtype), nll.to(dtype), dx, dw


def _masked_block(
    logits: Tensor, target: Tensor, real: Tensor, at_target: float, gain: float
) -> Tuple[Tensor, Tensor]:
    """``logits`` (M, V), ``target`` and ``real`` (M, 1) -> sums over real rows and a gradient.

    The sums of -log p(target) and of log-sum-exp, (2,) in float64; and p, minus ``at_target`` at
    the target, times ``gain``, or 0 in other rows: (M, V) in the precision of the logits.
    """
    logs = torch.log_softmax(logits, 1, dtype=at_least_float32(logits.dtype))
    log_p = logs.gather(1, target)
    lse = logits.gather(1, target) - log_p
    sums = (torch.stack([-log_p, lse]) * real).sum((1, 2), dtype=torch.float64)
    p = logs.exp_().scatter_(1, target, log_p.exp() - at_target)
    return sums, p.mul_(real * gain).to(logits.dtype)


def _block(logits: Tensor, target: Tensor, at_target: float) -> Tuple[Tensor, Tensor]:
    """:func:`_masked_block` for real rows only, gain 1: two passes fewer over probabilities."""
    p = torch.softmax(logits, 1)
    of_target = p.gather(1, target)
    nll = -of_target.log()
    if of_target.min() < _TINY:
        nll = logits.logsumexp(1, keepdim=True) - logits.gather(1, target)
    lse = logits.gather(1, target) + nll
    p.scatter_(1, target, of_target - at_target)
    return torch.stack([nll, lse]).sum((1, 2), dtype=torch.float64), p
