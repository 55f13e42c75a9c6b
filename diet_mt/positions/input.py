"""Positions added to the token embeddings of a stack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Optional

from torch import Tensor, nn

from ..errors import UserError
from .beyond import REFUSE, read
from .layer import too_long


class InputPositions(nn.Module, ABC):
    """Vectors added to the token embeddings of one stack, a row for each position.

    Has the signature of fairseq's position embeddings, so that fairseq's own embedding code takes
    it. ``beyond``: what is added to the tokens of longer sentences (see ``beyond.py``), and
    ``may_go_on``, whether the model takes another answer; the stack sets them.
    """

    def __init__(self, max_positions: int, embed_dim: int) -> None:
        super().__init__()
        self.beyond = REFUSE
        self.may_go_on = True
        self.max_positions = max_positions
        self.embed_dim = embed_dim

    @abstractmethod
    def table(self) -> Tensor:
        """(n, E) rows to add, row i for position i."""

    def draw(self, std: float) -> None:
        """Draws what is learned here anew, normal with ``std``, as the stack's token embeddings
        are; leaves what is fixed.
        """

    def rows(self, start: int, stop: int) -> Tensor:
        """Rows of positions ``start .. stop - 1``: (1, T, E).

        Raises :class:`UserError` beyond the longest position, unless something is to be read there.
        """
        if stop > self.max_positions and self.beyond == REFUSE:
            raise UserError(too_long(stop, self.max_positions, may_go_on=self.may_go_on))
        return read(self.table(), start, stop, self.beyond).unsqueeze(0)

    def at(self, places: Tensor) -> Tensor:
        """Rows of the positions ``places`` (T,): (1, T, E)."""
        return self.table()[places].unsqueeze(0)

    def from_start(self, tokens: Tensor, start: int) -> Tensor:
        """``tokens`` (B, T), right-padded, from position ``start`` on -> (B|1, T, E): B where
        training draws positions for every sentence.
        """
        return self.rows(start, start + tokens.size(1))

    def forward(self, tokens: Tensor, start: int = 0, places: Optional[Tensor] = None) -> Tensor:
        """:meth:`from_start`; where the tokens stand at ``places`` (T,), :meth:`at` these."""
        return self.from_start(tokens, start) if places is None else self.at(places)

    def extra_repr(self) -> str:
        return f"max_positions={self.max_positions}, embed_dim={self.embed_dim}"
