"""Options of ``diet-mt figures``."""

from __future__ import annotations

from dataclasses import dataclass

from ..system.errors import UserError
from ..system.options import Count, Positive, option


@dataclass(frozen=True)
class FigureConfig:
    """Figures."""

    subset: str = option("part of the data, for sentences", "valid")
    sentences: Positive = option("number of sentences", 32)
    rank_tokens: Positive = option("size of the matrices of rank, tokens", 96)
    positions: Positive = option("positions in patterns, similarity and heads", 32)
    near: Count = option("distance in tokens that is near", 2, metavar="K")

    def __post_init__(self) -> None:
        least = 2 * self.near + 2  # or the last position would be near the first half
        if self.positions < least:
            raise UserError(
                f"--positions {self.positions}: with --near {self.near} give {least} or more"
            )
