"""The precision of sums, also under autocast."""

from __future__ import annotations

from contextlib import nullcontext
from typing import ContextManager

import torch
from torch import Tensor

from .compiled import is_exporting


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """float32 for half precision, otherwise ``dtype``: the precision of sums."""
    return torch.promote_types(dtype, torch.float32)


def autocasts(device: torch.device) -> bool:
    """Whether autocast is on for this kind of device."""
    kind = device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def no_autocast(device: torch.device) -> ContextManager[object]:
    """Context whose products have the precision of their operands, also under autocast."""
    # torch.autocast does not support every device, and would be part of an exported program.
    if is_exporting() or not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def product(query: Tensor, key: Tensor) -> Tensor:
    """Product of factors F_Q (..., T, R) and F_K (..., S, R): F_Q F_K^T (..., T, S).

    Summed in the factors' precision also under autocast, whose rounding adds up from rank 64 on.
    """
    with no_autocast(query.device):
        return query @ key.transpose(-1, -2)
