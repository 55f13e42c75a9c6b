"""Positions added to the token embeddings of a stack."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from .beyond import REFUSE, read
from .spans import Span, need_positions


class InputPositions(nn.Module, ABC):
    """Vectors added to the token embeddings of one stack, a row for each position.

    ``beyond``: what is added to the tokens of longer sentences (see ``beyond.py``), and
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

    def rows(self, at: Span) -> Tensor:
        """Rows of these positions: (1, T, E).

        Raises :class:`UserError` beyond the longest position, unless something is to be read there.
        """
        if self.beyond == REFUSE:
            need_positions(at, self.max_positions, may_go_on=self.may_go_on)
        return read(self.table(), at, self.beyond).unsqueeze(0)

    def forward(self, tokens: Tensor, at: Span) -> Tensor:
        """``tokens`` (B, T), right-padded, at these positions -> (B|1, T, E): B where training
        draws positions for every sentence.
        """
        return self.rows(at)

    def extra_repr(self) -> str:
        return f"max_positions={self.max_positions}, embed_dim={self.embed_dim}"
