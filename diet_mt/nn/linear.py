"""Linear layers by the faster of torch's two CPU libraries, MKL and oneDNN.

torch computes float32 products of linear layers with MKL, which takes a slow path on processors
that are not Intel's: 85 to 92 GFLOP/s on a core of an AMD EPYC with AVX-512, against 165 to 205
with oneDNN, at the same error. On an Intel Xeon with AVX-512 both are equally fast (within 8 %),
and MKL saves a copy.

So oneDNN computes large products on x86 processors of AMD and Hygon, and F.linear all others. The
rule is fixed rather than measured at the start, so that a training is reproducible to the byte.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Multiplications of a product below which the call costs more than oneDNN saves.
_SMALLEST = 1 << 21
# The gradient of a weight needs a transposed copy of the narrower operand, which pays if the other
# is at least this wide: at 128 x 128 the copy costs what oneDNN saves.
_WIDEST_FROM = 256
_MAKERS = ("AuthenticAMD", "HygonGenuine")


class Linear(nn.Linear):
    """``nn.Linear`` over :func:`linear`: same parameters, state dict, values up to rounding."""

    def forward(self, input: Tensor) -> Tensor:
        if torch.jit.is_scripting():
            return F.linear(input, self.weight, self.bias)
        return linear(input, self.weight, self.bias)

    # torch.ao quantizes only layers of the class nn.Linear, and would silently skip these.
    __jit_unused_properties__ = ("qconfig",)

    @property
    def qconfig(self) -> Any:
        raise AttributeError("qconfig")

    @qconfig.setter
    def qconfig(self, config: Any) -> None:
        raise TypeError(
            "torch.ao does not quantize these layers; diet_mt.layers.int8.quantize_ does"
        )


def use_fast_products(model: nn.Module) -> None:
    """Turns each ``nn.Linear`` inside ``model`` into :class:`Linear`, except subclasses.

    Only the class changes: parameters, hooks, names and tied weights stay.
    """
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """x weight^T + bias: (..., E'). ``x`` (..., E), ``weight`` (E', E), ``bias`` (E',) or None."""
    if not one_dnn_serves(x, weight, bias):
        return F.linear(x, weight, bias)
    out: Tensor = _Linear.apply(x.reshape(-1, x.size(-1)), weight, bias)
    return out.view(*x.shape[:-1], weight.size(0))


def product(x: Tensor, weight: Tensor) -> Tensor:
    """:func:`linear` of ``x`` (N, E), without bias or gradient; any strides of ``weight``."""
    if one_dnn_serves(x, weight, None):
        return _one_dnn(x.contiguous(), weight)
    return F.linear(x, weight)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Adds left^T right to ``total`` (E', E), in place and in the precision of ``total``.

    ``left`` (N, E') and ``right`` (N, E) may be less precise.
    """
    if total.dtype != left.dtype:
        half = left.device.type == "cuda" and left.dtype == torch.float16  # sums could overflow
        multiply: Any = torch.mm
        total += multiply(left.t(), right, **{"out_dtype": total.dtype} if half else {})
    elif one_dnn_serves(right.t(), left.t(), None):
        total += _transposed_product(left, right)
    else:
        total.addmm_(left.t(), right)


@lru_cache(maxsize=1)
def one_dnn_is_faster() -> bool:
    """Whether oneDNN is the faster library on this processor."""
    return (
        hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and torch.backends.mkldnn.is_available()
        and torch.backends.mkl.is_available()  # otherwise F.linear uses a third library
        and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
        and _maker() in _MAKERS
    )


def _maker() -> str:
    """Vendor string of an x86 processor, such as ``AuthenticAMD``; another text elsewhere."""
    if (cpuinfo := Path("/proc/cpuinfo")).is_file():  # Linux
        _, _, rest = cpuinfo.read_text(encoding="utf-8", errors="replace").partition("vendor_id")
        return rest.partition("\n")[0].strip("\t :")
    # "AMD64 Family 25 Model 33 Stepping 0, AuthenticAMD" on Windows.
    return platform.processor().rpartition(", ")[2]


def one_dnn_serves(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> bool:
    """Whether oneDNN computes x weight^T + bias.

    For large products of plain float32 tensors on a CPU, outside of autocast, tracing and
    ``torch.compile``.
    """
    if torch.compiler.is_compiling() or not one_dnn_is_faster():
        return False
    return (
        not torch.jit.is_tracing()  # checked first: it makes sizes tensors
        and all(_is_plain(tensor) for tensor in (x, weight, bias) if tensor is not None)
        and x.numel() * weight.size(0) >= _SMALLEST
        and weight.dim() == 2
        and x.size(-1) == weight.size(1)  # otherwise F.linear raises
        and not torch.is_autocast_enabled("cpu")
        and bool(torch.backends.mkldnn.enabled)
    )


def _is_plain(tensor: Tensor) -> bool:
    """Whether ``tensor`` is a dense float32 Tensor or Parameter (no subclass) on a CPU."""
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.device.type == "cpu"
        and tensor.dtype == torch.float32
        and tensor.layout == torch.strided
    )


def _one_dnn(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """x weight^T + bias of a contiguous ``x`` (N, E) and ``weight`` (E', E) of any strides."""
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return out


class _Linear(torch.autograd.Function):
    """Autograd function of a linear layer by oneDNN, with its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x, weight)
        return _one_dnn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        if torch.is_grad_enabled():  # the gradients have to be differentiable
            dx = gradient @ weight if for_x else None
            dw = gradient.t() @ x if for_weight else None
        else:
            gradient = gradient.contiguous()
            dx = _one_dnn(gradient, weight.t()) if for_x else None
            dw = _transposed_product(gradient, x) if for_weight else None
        return dx, dw, gradient.sum(0) if for_bias else None


def _transposed_product(left: Tensor, right: Tensor) -> Tensor:
    """left^T right, (E', E), for ``left`` (N, E') and ``right`` (N, E)."""
    if max(left.size(1), right.size(1)) < _WIDEST_FROM:
        return left.t() @ right
    # oneDNN needs a contiguous first operand and supports any strides of the second: the narrower
    # one is copied.
    if right.size(1) <= left.size(1):
        return _one_dnn(right.t().contiguous(), left.t()).t()
    return _one_dnn(left.t().contiguous(), right.t())
