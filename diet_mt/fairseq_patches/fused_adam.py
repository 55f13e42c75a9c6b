"""``--optimizer adam``, norm and scaling of gradients: a few kernels instead of ten per parameter.

fairseq updates parameter by parameter, and copies to and from float32 in the same way: on a GPU,
Python is slower than the kernels. Replaced are its methods that do so, by ones that call them in
unusual cases; for the norm there is a function that fairseq calls where it has one, which without
apex it has not. Updates are fairseq's to rounding, and the state in a checkpoint has the same form.
``--use-old-adam`` leaves Adam as it is, not what surrounds it.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

import torch
from fairseq import utils
from fairseq.optim.adam import Adam, FairseqAdam
from fairseq.optim.fairseq_optimizer import FairseqOptimizer
from fairseq.optim.fp16_optimizer import _FP16OptimizerMixin
from torch import Tensor
from torch._utils import _unflatten_dense_tensors

_HALF = (torch.float16, torch.bfloat16)
_CHUNK = 2**24  # numbers of half precision that are in float32 at a time, or one parameter


class FusedAdam(Adam):
    """fairseq's Adam in torch's fused kernel, which divides gradients by ``scale`` as well."""

    supports_step_with_scale = True

    def step(
        self, closure: Optional[Callable[[], Any]] = None, scale: Union[float, Tensor] = 1.0
    ) -> Any:
        loss = None if closure is None else closure()
        with torch.no_grad():
            if all(map(_is_usual, self.param_groups)):
                for group in self.param_groups:
                    for parameters in self._alike(group):
                        self._update(parameters, group, scale)
                return loss
            if torch.is_tensor(scale) or scale != 1.0:
                for p in _with_gradients(self.param_groups):
                    p.grad.mul_(1.0 / scale)
        super().step()
        return loss

    def _alike(self, group: Dict[str, Any]) -> Iterator[List[Tensor]]:
        """Parameters with a gradient of one device, precision and number of updates."""
        alike = defaultdict(list)
        for p in _with_gradients([group]):
            state, precise = self.state[p], torch.promote_types(p.dtype, torch.float32)
            for name in ("exp_avg", "exp_avg_sq"):
                if name not in state:
                    state[name] = torch.zeros_like(p, dtype=precise)
                state[name] = _laid_out(state[name], p, precise)
            state["step"] = state.get("step", 0) + 1
            alike[p.device, p.dtype, state["step"]].append(p)
        for parameters in alike.values():
            yield from _chunks(parameters) if parameters[0].dtype in _HALF else [parameters]

    def _update(
        self, parameters: List[Tensor], group: Dict[str, Any], scale: Union[float, Tensor]
    ) -> None:
        states = [self.state[p] for p in parameters]
        step, (beta1, beta2) = states[0]["step"], group["betas"]
        weights, gradients = parameters, [_laid_out(p.grad, p, p.dtype) for p in parameters]
        if parameters[0].dtype in _HALF:
            weights, gradients = _float32(parameters), _float32(gradients)
        # One tensor for all, filled by a kernel: a copy from the CPU would be waited for.
        scalar = functools.partial(torch.full, (), device=weights[0].device, dtype=torch.float32)
        divisor = None
        if torch.is_tensor(scale):
            divisor = scale.to(weights[0].device, torch.float32)
        elif scale != 1.0:
            divisor = scalar(scale)
        torch._fused_adamw_(
            weights,
            gradients,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [scalar(float(step))] * len(states),
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            # fairseq adds it before the bias correction of exp_avg_sq, torch after.
            eps=group["eps"] / math.sqrt(1 - beta2**step),
            amsgrad=False,
            maximize=False,
            grad_scale=divisor,
        )
        if weights is not parameters:
            torch._foreach_copy_(parameters, weights)


def _with_gradients(groups: Iterable[Dict[str, Any]]) -> Iterator[Any]:
    return (p for group in groups for p in group["params"] if p.grad is not None)


def _is_usual(group: Dict[str, Any]) -> bool:
    """Whether the fused kernel can update its parameters."""
    return not group.get("amsgrad") and all(
        p.is_contiguous() and p.grad.layout == torch.strided for p in _with_gradients([group])
    )


def _laid_out(tensor: Any, like: Tensor, dtype: torch.dtype) -> Tensor:
    """``tensor`` where ``like`` is, with its strides: the kernel reads memory in order."""
    if tensor.device == like.device and tensor.stride() == like.stride() and tensor.dtype == dtype:
        return tensor
    return torch.empty_like(like, dtype=dtype).copy_(tensor)


def _float32(tensors: List[Tensor]) -> List[Tensor]:
    copies = [torch.empty_like(x, dtype=torch.float32) for x in tensors]
    torch._foreach_copy_(copies, tensors)
    return copies


def _chunks(parameters: List[Tensor]) -> Iterator[List[Tensor]]:
    """Consecutive parameters of at most ``_CHUNK`` numbers, or one."""
    chunk: List[Tensor] = []
    size = 0
    for p in parameters:
        size += p.numel()
        if chunk and size > _CHUNK:
            yield chunk
            chunk, size = [], p.numel()
        chunk.append(p)
    yield chunk


def fused(init: Callable[..., None]) -> Callable[..., None]:
    """``FairseqAdam.__init__`` with :class:`FusedAdam` for fairseq's ``Adam``."""

    @functools.wraps(init)
    def wrapped(self: Any, cfg: Any, params: Any) -> None:
        init(self, cfg, params)
        own = self._optimizer
        left_alone = getattr(cfg, "use_old_adam", False) or getattr(cfg, "tpu", False)
        if type(own) is Adam and not left_alone:
            self._optimizer = FusedAdam(own.param_groups, **own.defaults)

    return wrapped


def multiplied_at_once(multiply: Callable[..., None]) -> Callable[..., None]:
    """``FairseqOptimizer.multiply_grads``, by a number in one call."""

    @functools.wraps(multiply)
    def wrapped(self: Any, c: Any) -> None:
        gradients = [p.grad for p in self.params if p.grad is not None]
        if torch.is_tensor(c) or not gradients or any(x.is_sparse for x in gradients):
            multiply(self, c)
        else:
            torch._foreach_mul_(gradients, c)

    return wrapped


def total_norm(grads: List[Tensor]) -> Tensor:
    norms = torch._foreach_norm(grads, 2, torch.float32)
    return torch.linalg.vector_norm(torch.stack([norm.to(norms[0].device) for norm in norms]))


def _masters(optimizer: Any, gradients: bool) -> Optional[List[Tensor]]:
    """The parameters in float32, or their gradients; None in unusual cases."""
    own = optimizer.fp32_params
    if not all(p.requires_grad for p in optimizer.fp16_params):
        return None
    if not optimizer.has_flat_params:
        found = [p.grad for p in own] if gradients else own
        return None if any(x is None for x in found) else found
    if not isinstance(own, dict) or len(own) != 1:  # --pipeline-model-parallel
        return None
    (flat,) = own.values()
    return list(_unflatten_dense_tensors(flat.grad if gradients else flat, optimizer.fp16_params))


def gradients_at_once(sync: Callable[..., None]) -> Callable[..., None]:
    """``_sync_fp16_grads_to_fp32``: absent gradients are zeros."""

    @functools.wraps(sync)
    def wrapped(self: Any) -> None:
        masters = _masters(self, gradients=True) if self._needs_sync else None
        if masters is None:
            return sync(self)
        gradients = [p.grad for p in self.fp16_params]
        there = [n for n, gradient in enumerate(gradients) if gradient is not None]
        absent = [masters[n] for n, gradient in enumerate(gradients) if gradient is None]
        with torch.no_grad():
            if there:
                torch._foreach_copy_([masters[n] for n in there], [gradients[n] for n in there])
            if absent:
                torch._foreach_zero_(absent)
        self._needs_sync = False

    return wrapped


def parameters_at_once(sync: Callable[..., None]) -> Callable[..., None]:
    """``_sync_fp32_params_to_fp16``."""

    @functools.wraps(sync)
    def wrapped(self: Any) -> None:
        masters = _masters(self, gradients=False)
        if masters is None:
            return sync(self)
        with torch.no_grad():
            torch._foreach_copy_(self.fp16_params, masters)

    return wrapped


def scaled_once(step: Callable[..., None]) -> Callable[..., None]:
    """``step``: gradients are scaled after it, as they are where fairseq scales them.

    fairseq left the factor as it was for optimizers that scale, and in bfloat16 for ever.
    """

    @functools.wraps(step)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        step(self, *args, **kwargs)
        self._multiply_factor = 1.0

    return wrapped


def zeroed_at_once(zero_grad: Callable[..., None]) -> Callable[..., None]:
    """``zero_grad``, of many float32 gradients in one call."""

    @functools.wraps(zero_grad)
    def wrapped(self: Any) -> None:
        masters = self.fp32_params
        if self.has_flat_params:
            return zero_grad(self)
        torch._foreach_zero_([p.grad for p in masters if p.grad is not None])
        self.fp32_params = []  # nothing left to zero for fairseq
        try:
            zero_grad(self)
        finally:
            self.fp32_params = masters

    return wrapped


FairseqAdam.__init__ = fused(FairseqAdam.__init__)
FairseqOptimizer.multiply_grads = multiplied_at_once(FairseqOptimizer.multiply_grads)
if not utils.multi_tensor_l2norm_available:
    utils.multi_tensor_l2norm_available, utils.multi_tensor_total_norm = True, total_norm
_FP16OptimizerMixin._sync_fp16_grads_to_fp32 = gradients_at_once(
    _FP16OptimizerMixin._sync_fp16_grads_to_fp32
)
_FP16OptimizerMixin._sync_fp32_params_to_fp16 = parameters_at_once(
    _FP16OptimizerMixin._sync_fp32_params_to_fp16
)
_FP16OptimizerMixin.step = scaled_once(_FP16OptimizerMixin.step)
_FP16OptimizerMixin.zero_grad = zeroed_at_once(_FP16OptimizerMixin.zero_grad)
