"""``--optimizer adam``, norm and scaling of gradients: a few kernels instead of ten per parameter.

fairseq updates parameters one by one, and copies to and from float32 in the same way: on a GPU,
Python is slower than the kernels. Updates equal fairseq's up to rounding, and the state in a
checkpoint has the same form. ``--use-old-adam`` selects fairseq's Adam; the rest stays replaced.

The functions at the end replace fairseq's, which they get as their first argument and call in
unusual cases.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

import torch
from fairseq.optim.adam import Adam
from torch import Tensor
from torch._utils import _unflatten_dense_tensors

from ..nn.precision import at_least_float32

_HALF = (torch.float16, torch.bfloat16)
_CHUNK = 2**24  # elements in half precision that are copied to float32 at a time


class FusedAdam(Adam):
    """fairseq's Adam by torch's fused kernel, which also divides gradients by ``scale``."""

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
        """Parameters with a gradient, grouped by device, precision and number of updates."""
        alike = defaultdict(list)
        for p in _with_gradients([group]):
            state, precise = self.state[p], at_least_float32(p.dtype)
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
        # Filled by a kernel: Python would wait for a copy from the CPU.
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
            # fairseq adds eps before the bias correction of exp_avg_sq, torch after it.
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
    """Whether the fused kernel can update the parameters of ``group``."""
    return not group.get("amsgrad") and all(
        p.is_contiguous() and p.grad.layout == torch.strided for p in _with_gradients([group])
    )


def _laid_out(tensor: Any, like: Tensor, dtype: torch.dtype) -> Tensor:
    """``tensor`` on the device of ``like``, with its strides: the kernel reads memory in order."""
    if tensor.device == like.device and tensor.stride() == like.stride() and tensor.dtype == dtype:
        return tensor
    return torch.empty_like(like, dtype=dtype).copy_(tensor)


def _float32(tensors: List[Tensor]) -> List[Tensor]:
    copies = [torch.empty_like(x, dtype=torch.float32) for x in tensors]
    torch._foreach_copy_(copies, tensors)
    return copies


def _chunks(parameters: List[Tensor]) -> Iterator[List[Tensor]]:
    """Runs of parameters with at most ``_CHUNK`` elements, or of one larger parameter."""
    chunk: List[Tensor] = []
    size = 0
    for p in parameters:
        size += p.numel()
        if chunk and size > _CHUNK:
            yield chunk
            chunk, size = [], p.numel()
        chunk.append(p)
    yield chunk


def _masters(optimizer: Any, gradients: bool) -> Optional[List[Tensor]]:
    """The float32 copies of the parameters, or their gradients; None in unusual cases."""
    own = optimizer.fp32_params
    if not all(p.requires_grad for p in optimizer.fp16_params):
        return None
    if not optimizer.has_flat_params:
        masters = [p.grad for p in own] if gradients else own
        return None if any(x is None for x in masters) else masters
    if not isinstance(own, dict) or len(own) != 1:  # --pipeline-model-parallel
        return None
    (flat,) = own.values()
    return list(_unflatten_dense_tensors(flat.grad if gradients else flat, optimizer.fp16_params))


def build_adam(original: Callable[..., None], adam: Any, cfg: Any, params: Any) -> None:
    """Builds :class:`FusedAdam` where fairseq would use its own Adam."""
    original(adam, cfg, params)
    own = adam._optimizer
    if type(own) is Adam and not (getattr(cfg, "use_old_adam", False) or getattr(cfg, "tpu", 0)):
        adam._optimizer = FusedAdam(own.param_groups, **own.defaults)


def multiply_grads(original: Callable[..., None], optimizer: Any, c: Any) -> None:
    """Multiplies all gradients by ``c``."""
    gradients = [p.grad for p in optimizer.params if p.grad is not None]
    if torch.is_tensor(c) or not gradients or any(x.is_sparse for x in gradients):
        original(optimizer, c)
    else:
        torch._foreach_mul_(gradients, c)


def total_norm(grads: List[Tensor]) -> Tensor:
    """The L2 norm of all gradients, in float32: ``multi_tensor_total_norm`` without apex."""
    norms = torch._foreach_norm(grads, 2, torch.float32)
    return torch.linalg.vector_norm(torch.stack([norm.to(norms[0].device) for norm in norms]))


def sync_gradients(original: Callable[..., None], optimizer: Any) -> None:
    """Copies the gradients to float32, with zeros for absent ones."""
    masters = _masters(optimizer, gradients=True) if optimizer._needs_sync else None
    if masters is None:
        return original(optimizer)
    pairs = [*zip(masters, (p.grad for p in optimizer.fp16_params), strict=True)]
    present = [pair for pair in pairs if pair[1] is not None]
    absent = [master for master, gradient in pairs if gradient is None]
    with torch.no_grad():
        if present:
            torch._foreach_copy_([m for m, _ in present], [gradient for _, gradient in present])
        if absent:
            torch._foreach_zero_(absent)
    optimizer._needs_sync = False


def sync_parameters(original: Callable[..., None], optimizer: Any) -> None:
    """Copies the parameters from float32."""
    masters = _masters(optimizer, gradients=False)
    if masters is None:
        return original(optimizer)
    with torch.no_grad():
        torch._foreach_copy_(optimizer.fp16_params, masters)


def step(original: Callable[..., None], optimizer: Any, *args: Any, **kwargs: Any) -> None:
    """Resets the factor of gradients, which fairseq does only where it scales them itself."""
    original(optimizer, *args, **kwargs)
    optimizer._multiply_factor = 1.0


def zero_grad(original: Callable[..., None], optimizer: Any) -> None:
    """Clears all gradients: zeros in float32, None in half precision."""
    masters = optimizer.fp32_params
    if optimizer.has_flat_params:
        return original(optimizer)
    torch._foreach_zero_([p.grad for p in masters if p.grad is not None])
    optimizer.fp32_params = []  # nothing left to zero for fairseq
    try:
        original(optimizer)
    finally:
        optimizer.fp32_params = masters
