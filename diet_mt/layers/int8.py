"""Linear layers with weights in 8-bit integers, for inference on a CPU.

Each row of a weight has its own scale, and each row of the input is quantized by itself when it is
multiplied: a row of the output depends neither on other rows nor on the number of threads.
"""

from __future__ import annotations

from typing import Any, Sequence, TypeVar

import torch
from torch import Tensor, nn

from .. import kernels
from ..nn.linear import Linear
from ..system.errors import UserError

Model = TypeVar("Model", bound=nn.Module)


class Int8Linear(nn.Module):
    """x W^T + bias. ``parts``: result of :func:`~diet_mt.kernels.pack`, and the padded bias."""

    weight: Tensor
    scale: Tensor
    sums: Tensor
    bias: Tensor

    def __init__(self, in_features: int, out_features: int, parts: Sequence[Tensor]) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        for name, part in zip(("weight", "scale", "sums", "bias"), parts, strict=True):
            self.register_buffer(name, part)

    @classmethod
    def of(cls, layer: Any) -> Int8Linear:
        """An int8 copy of a linear ``layer``."""
        weight, scale, sums = kernels.pack(layer.weight.detach())
        bias = torch.zeros_like(scale)
        if layer.bias is not None:
            bias[: layer.out_features] = layer.bias.detach()
        return cls(layer.in_features, layer.out_features, (weight, scale, sums, bias))

    def forward(self, x: Tensor) -> Tensor:
        """``x`` (..., E) -> (..., N)."""
        out = x.new_empty(*x.shape[:-1], self.out_features)
        self.multiply(x.reshape(-1, x.size(-1)), out.view(-1, self.out_features))
        return out

    def multiply(self, x: Tensor, out: Tensor) -> Tensor:
        """Writes the output for ``x`` (rows, E) to ``out`` (rows, N), with contiguous rows."""
        return kernels.multiply(x, self.weight, self.scale, self.sums, self.bias, out)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def joined(layers: Sequence[Any]) -> Sequence[Any]:
    """One layer for ``layers`` over one input, if all are in int8, unpadded and without hooks."""
    if len(layers) < 2 or not all(
        isinstance(each, Int8Linear)
        and not each._forward_hooks
        and each.out_features == each.scale.numel()
        for each in layers
    ):
        return layers
    parts = [torch.cat(each) for each in zip(*(layer.buffers() for layer in layers), strict=True)]
    return [Int8Linear(layers[0].in_features, parts[1].numel(), parts)]


def quantize_(model: Model) -> Model:
    """Quantizes linear layers of ``model`` to int8 in place, for inference; returns ``model``.

    Layers with hooks or of classes other than ``nn.Linear`` and ours stay. Raises UserError unless
    ``model`` is in float32 on a CPU and the loops in C++ are compiled.
    """
    kinds = {(each.device.type, each.dtype) for each in model.parameters()}
    if kinds - {("cpu", torch.float32)}:
        raise UserError("int8 requires a CPU and float32 weights; give --cpu, without --fp16")
    if not kernels.compiled():
        raise UserError(
            "int8 requires the compiled C++ loops; install diet_mt again with a C++ compiler "
            "(make setup)"
        )
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if type(layer) in (nn.Linear, Linear) and not layer._forward_hooks:
                setattr(module, name, Int8Linear.of(layer))
    model.eval()  # returns None if fairseq has prepared the model for inference
    return model.requires_grad_(False)
