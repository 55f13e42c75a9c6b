"""What figures are asked to show, without the models that show it."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UserError


@dataclass(frozen=True)
class Asked:
    """What is looked at. ``subset``: split that sentences are taken from.

    Raises UserError where the last position would be near the first half.
    """

    subset: str = "valid"
    sentences: int = 32
    rank_tokens: int = 96  # n of the matrices whose rank is taken
    positions: int = 32  # n of the heat maps
    near: int = 2  # K in tokens: what is near, where heads are called local

    def __post_init__(self) -> None:
        least = 2 * self.near + 2
        if self.positions < least:
            raise UserError(
                f"--positions {self.positions}: with --near {self.near} give {least} or more"
            )
