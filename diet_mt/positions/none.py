"""No positions at all: the control, and the null case of every test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Tuple

from .base import PositionEncoding


@dataclass(frozen=True)
class NoPositions(PositionEncoding):
    """A[i, j] = q_i . k_j / sqrt(D). Only the causal mask of the decoder still tells one order from
    another.
    """

    name: ClassVar[str] = "none"
    acts_in: ClassVar[Tuple[str, ...]] = ()
