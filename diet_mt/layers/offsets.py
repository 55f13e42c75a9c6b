"""What a stack adds to the logits of each of its layers: positional term and masks in one
tensor.
"""

from __future__ import annotations

from typing import Optional

from torch import Tensor


class LayerOffsets:
    """Offsets of all layers of a stack for one kind of attention, made as they are asked for.

    fairseq's layers hand one tensor through to attention untouched, in all three kinds of
    attention: the padding mask. Our stacks put these offsets there. That it is an explicit tensor
    argument matters: only such arguments are differentiated through under activation checkpointing,
    and a table shared by layers is read once per forward pass, outside the layers, as DDP and FSDP
    require.

    Args:
        bias: (L|1, H|1, T, S) from an ``AttentionBias``, or None.
        mask: (B|1, 1, T|1, S), 0 or -inf, or None.
    """

    def __init__(self, bias: Optional[Tensor], mask: Optional[Tensor]) -> None:
        self._bias = bias
        self._mask = mask
        self._same_for_all: Optional[Tensor] = None
        if bias is None:
            self._same_for_all = mask
        elif bias.size(0) == 1:
            self._same_for_all = self._combine(bias)

    def _combine(self, bias: Tensor) -> Tensor:
        return bias if self._mask is None else bias.to(self._mask.dtype) + self._mask

    def of(self, layer: int) -> Optional[Tensor]:
        """Offsets of one layer, (B|1, H|1, T|1, S), or None where there is nothing to add."""
        if self._bias is None or self._same_for_all is not None:
            return self._same_for_all
        return self._combine(self._bias[layer : layer + 1])
