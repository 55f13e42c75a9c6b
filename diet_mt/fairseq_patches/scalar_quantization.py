"""``--quant-noise-scalar`` with the layers of our models, and without a GPU.

fairseq finds the quantized form of a layer by its exact class, so that a subclass ends in
``KeyError``; and it moves the scale of every tensor to a GPU, whether there is one or not. Replaced
in ``fairseq.modules.quantization.scalar``: ``utils.MAPPING``, the table of quantized forms, by one
that knows subclasses, and ``ops.emulate_int8_histogram``, by a function that calls it.
"""

from __future__ import annotations

import functools
from typing import Callable, Dict, Optional, Tuple

from fairseq.modules.quantization.scalar import ops, utils
from torch import Tensor, nn

from ..errors import UserError
from ..layers.stack import PaddedEmbedding, QuantizedPaddedEmbedding

Emulation = Callable[..., Tuple[Tensor, Tensor, Tensor]]


class QuantizedForms(Dict[type, type]):
    """The quantized form of each class of layers. A subclass has that of its nearest ancestor.

    That is right where a subclass computes the same from the same parameters. Subclasses of
    ``nn.Embedding`` often do not: fairseq's learned positions look up something else than what they
    are given. So each of those needs an entry of its own.
    """

    def __missing__(self, kind: type) -> type:
        """Raises UserError where ``kind`` has no quantized form."""
        for ancestor in kind.__mro__[1:]:
            if ancestor in self and ancestor is not nn.Embedding:
                return self[ancestor]
        raise UserError(
            f"--quant-noise-scalar: {kind.__name__} has no quantized form; leave the option out"
        )


def emulate_on_any_device(emulate: Emulation) -> Emulation:
    """``emulate(w, scale, zero_point, bits)`` that also works where torch has no GPU.

    Where it is not given them it would take scale and zero point from a histogram of ``w``, move
    them to the GPU, and then to where ``w`` is. So it is given them.
    """

    @functools.wraps(emulate)
    def wrapped(
        w: Tensor,
        scale: Optional[Tensor] = None,
        zero_point: Optional[Tensor] = None,
        bits: int = 8,
    ) -> Tuple[Tensor, Tensor, Tensor]:
        if scale is None or zero_point is None:
            observer = ops.quantization.observer.HistogramObserver().to(device=w.device)
            observer(w.float())
            scale, zero_point = (value.to(w) for value in observer.calculate_qparams())
        return emulate(w, scale=scale, zero_point=zero_point, bits=bits)

    return wrapped


utils.MAPPING = QuantizedForms({**utils.MAPPING, PaddedEmbedding: QuantizedPaddedEmbedding})
ops.emulate_int8_histogram = emulate_on_any_device(ops.emulate_int8_histogram)
