"""Figures of the paper from trained checkpoints, and its theorems on random draws."""

from __future__ import annotations

from dataclasses import dataclass

from ..system.errors import UserError
from ..system.options import Count, Positive, option


@dataclass(frozen=True)
class FigureConfig:
    """Figures."""

    subset: str = option("split from which sentences are taken", "valid")
    sentences: Positive = option("number of sentences", 32)
    rank_tokens: Positive = option("tokens of a sequence for rank", 96)
    positions: Positive = option("positions for patterns, similarity and heads", 32)
    near: Count = option("largest distance that counts as near, in tokens", 2, metavar="K")

    def __post_init__(self) -> None:
        least = 2 * self.near + 2  # otherwise the last position is near the first half
        if self.positions < least:
            raise UserError(
                f"--positions {self.positions}: must be at least {least} with --near {self.near}"
            )
