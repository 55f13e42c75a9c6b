"""Dropout with cheap random numbers on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .compiled import may_read

_STEPS = 1 << 16  # one 16-bit random number decides over one value


def dropout(x: Tensor, p: float) -> Tensor:
    """Each value of ``x`` is 0 with probability ``p``, and otherwise divided by ``1 - p``.

    torch draws a 53-bit number for each value, one after the other on a single core: a seventh of
    a training step of the tiny models on two cores. Here 16 bits are compared with ``p``, which is
    rounded to a multiple of 1/65536 (and the divisor with it, so that the expectation stays exact),
    and a draw of 64 serves four values. On other devices, and in a compiled graph, this is torch's
    own.
    """
    dropped = round(p * _STEPS)
    if not (may_read(x) and 0 < dropped < _STEPS):
        return F.dropout(x, p)
    count = x.numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[:count].view(x.shape)  # uniform over -32768 .. 32767
    factor = bits.ge(dropped - _STEPS // 2).to(x.dtype)
    return x * factor.mul_(_STEPS / (_STEPS - dropped))
