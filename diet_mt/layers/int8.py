"""Linear layers with weights in 8-bit integers, for inference on a CPU.

A row of a weight has a scale of its own, and a row of the input one that is computed with it: a row
of a product depends neither on the other rows nor on the number of threads.
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
    """x W^T + bias. ``parts``: W by :func:`~diet_mt.kernels.pack`, and the bias, filled up."""

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
        """``layer``, a linear one, in int8."""
        weight, scale, sums = kernels.pack(layer.weight.detach())
        bias = torch.zeros_like(scale)
        if layer.bias is not None:
            bias[: layer.out_features] = layer.bias.detach()
        return cls(layer.in_features, layer.out_features, (weight, scale, sums, bias))

    def forward(self, x: Tensor) -> Tensor:
        """(..., E) -> (..., N)."""
        out = x.new_empty(*x.shape[:-1], self.out_features)
        self.multiply(x.reshape(-1, x.size(-1)), out.view(-1, self.out_features))
        return out

    def multiply(self, x: Tensor, out: Tensor) -> Tensor:
        """The output for ``x`` (rows, E), in ``out`` (rows, N), whose rows may have gaps."""
        return kernels.multiply(x, self.weight, self.scale, self.sums, self.bias, out)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def joined(layers: Sequence[Any]) -> Sequence[Any]:
    """``layers`` over one input as one, where all are in int8 and none is filled up."""
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
    """``model`` with its linear layers in int8, in place; for inference alone.

    Layers with hooks or of other classes than ``nn.Linear`` and ours stay as they are. Raises
    UserError unless ``model`` is in float32 on a CPU.
    """
    kinds = {(each.device.type, each.dtype) for each in model.parameters()}
    if kinds - {("cpu", torch.float32)}:
        raise UserError("int8 is computed on a CPU from float32 weights: --cpu, without --fp16")
    if not kernels.compiled():
        raise UserError(
            "int8 is computed by loops in C++, which are not compiled; install diet_mt again where "
            "there is a C++ compiler (make setup)"
        )
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if type(layer) in (nn.Linear, Linear) and not layer._forward_hooks:
                setattr(module, name, Int8Linear.of(layer))
    model.eval()  # of a model that fairseq has prepared for inference, it returns None
    return model.requires_grad_(False)
