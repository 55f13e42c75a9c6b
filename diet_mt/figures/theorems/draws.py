"""Random draws of the theorems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

SHOWN = 32  # positions at the input of a checkpoint that are looked at, if it has as many


@dataclass(frozen=True)
class Sizes:
    """Of the random draws; as in the checkpoints of the tiny models."""

    n: int = 96
    d: int = 128
    d_h: int = 32
    d_p: int = 48
    heads: int = 4
    draws: int = 10


def normal(generator: torch.Generator) -> Callable[..., Tensor]:
    """Draws of a shape, in float64."""
    return partial(torch.randn, generator=generator, dtype=torch.float64)
