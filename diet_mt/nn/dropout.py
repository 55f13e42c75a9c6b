"""Dropout with 16-bit random numbers on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .compiled import may_read

_STEPS = 1 << 16  # values of a 16-bit random number


def dropout(x: Tensor, p: float) -> Tensor:
    """``x`` with each value set to 0 with probability ``p``, and otherwise divided by ``1 - p``.

    On a CPU, ``F.dropout`` draws a 53-bit number for each value, one by one on a single core: a
    seventh of a training step of the tiny models on two cores. Here one draw of 64 bits serves four
    values, each of which compares 16 bits with ``p``. So ``p`` is rounded to a multiple of 1/65536,
    also in the divisor: the expectation stays exact. ``F.dropout`` itself serves other devices,
    compiled graphs, and a ``p`` that rounds to 0 or 1.
    """
    dropped = round(p * _STEPS)
    if not (may_read(x) and 0 < dropped < _STEPS):
        return F.dropout(x, p)
    count = x.numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[:count].view(x.shape)  # uniform over -32768 .. 32767
    factor = bits.ge(dropped - _STEPS // 2).to(x.dtype)
    return x * factor.mul_(_STEPS / (_STEPS - dropped))
