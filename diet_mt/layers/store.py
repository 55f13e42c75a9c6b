"""Memory at fixed addresses, for what is captured once and replayed with other numbers."""

from __future__ import annotations

import math
from typing import Dict, Iterable, Sequence

import torch
from torch import Tensor


class Store:
    """Tensors by name, each at the beginning of a flat one that only grows.

    ``moves``: how often a tensor was put at a new address so far. New memory holds zeros.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.moves = 0
        self._flat: Dict[str, Tensor] = {}

    def view(self, name: str, shape: Sequence[int], dtype: torch.dtype, room: int = 1) -> Tensor:
        """The tensor ``name`` in this shape. ``room``: times as much memory is taken, if any is."""
        count = math.prod(shape)
        flat = self._flat.get(name)
        if flat is None or flat.numel() < count or flat.dtype != dtype:
            size = count if flat is None else max(count, 3 * flat.numel() // 2)
            self._flat[name] = flat = torch.zeros(room * size, dtype=dtype, device=self.device)
            self.moves += 1
        return flat[:count].view(tuple(shape))

    def put(self, name: str, value: Tensor) -> Tensor:
        """A copy of ``value``, which may be a part of no tensor of this name."""
        return self.view(name, value.shape, value.dtype).copy_(value)

    def tensors(self) -> Iterable[Tensor]:
        """All memory that is held."""
        return self._flat.values()
