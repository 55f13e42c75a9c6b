"""Encodings whose tables have a rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterator, Optional

from .base import PositionEncoding
from .options import option


@dataclass(frozen=True)
class Ranked(PositionEncoding):
    """The option of all of them; where it is not given, the model's sizes say the rank."""

    rank: Optional[int] = option(
        "--position-rank",
        None,
        "rank of the tables of positions, the head size if not given; of concat the columns that "
        "positions take, an eighth of the model's width if not given",
        kind=int,
    )

    def continues(self) -> Iterator[str]:
        yield from super().continues()
        if self.rank is not None:
            # Of before the rank was said: the shapes of the tables tell it as well.
            yield replace(self, rank=None).describe()
