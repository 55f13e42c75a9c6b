"""Where the tokens of a sequence stand: one after the other, or at randomized positions."""

from __future__ import annotations

import sys
from typing import Tuple, Union

import torch
from torch import Tensor, nn

from ..errors import UserError
from .layer import too_long

# Positions of T tokens: a range without steps or, randomized, a tensor (T,) of ascending integers.
Span = Union[range, Tensor]

# Of the randomized positions outside of training, which are the same for every model.
SEED = 1


def tokens_in(span: Span) -> int:
    """T. By the ends of a range: torch.compile takes no ``len`` where they change."""
    return span.numel() if isinstance(span, Tensor) else span.stop - span.start


def extremes(queries: range, keys: range) -> Tuple[int, int]:
    """The lowest distance, that of the first query and the last key, and the highest."""
    return queries.start - (keys.stop - 1), queries.stop - 1 - keys.start


def as_tensor(span: Span, device: torch.device) -> Tensor:
    """The positions of T tokens as integers, (T,)."""
    if isinstance(span, Tensor):
        return span
    return torch.arange(span.start, span.stop, device=device)


def needed(span: Span) -> int:
    """Positions that a table must have; 0 for randomized ones, which it is made for."""
    return 0 if isinstance(span, Tensor) else span.stop


def need_positions(span: Span, limit: int, *, may_go_on: bool) -> None:
    """Raises :class:`UserError` where a table of ``limit`` positions has not all of them."""
    if needed(span) > limit:
        raise UserError(too_long(needed(span), limit, may_go_on=may_go_on))


class TokenPositions(nn.Module):
    """Tokens stand one after the other, from position 0 on."""

    longest = sys.maxsize  # a sequence

    def forward(self, length: int) -> Span:
        """Positions of the ``length`` T tokens of every sentence of a pass, ascending: (T,).

        Raises :class:`UserError` for more tokens than there are positions.
        """
        return self.at(0, length)

    def at(self, start: int, stop: int) -> Span:
        """Positions outside of training of the tokens ``start .. stop - 1``.

        Raises :class:`UserError` for more tokens than there are positions.
        """
        return range(start, stop)


class RandomizedPositions(TokenPositions):
    """Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of
    Transformers" (arXiv:2305.16843), section 3: the T tokens of a sequence stand at T of the
    ``count`` N positions 0 to N - 1, drawn without replacement and sorted, so that training sees
    the positions of sequences longer than its own.

    One draw for all sentences of a pass, all layers and the input; source and target are drawn
    apart. The draws are torch's own, so the seed that fairseq sets for every update repeats them.

    Where we differ: the paper draws at test as well, for the length of the sequence. A decoder does
    not know how long its sentence will be, and a translation must not depend on its batch. So
    outside of training there is one draw of ``longest`` positions, from a fixed seed, of which a
    sentence takes the first T. They lie closer than T of N would; so that training knows this, too,
    it draws m positions, m from T to N (evenly by its logarithm), and takes the first T. It does
    not stop at its own ``longest``: a model may be decoded with room for more tokens.
    """

    def __init__(self, count: int, longest: int) -> None:
        super().__init__()
        self.count, self.longest = count, longest
        every = torch.randperm(count, generator=torch.Generator().manual_seed(SEED))
        self.register_buffer("fixed", every[:longest].sort().values, persistent=False)

    def forward(self, length: int) -> Tensor:
        fixed = self.at(0, length)
        if not self.training:
            return fixed
        density = (self.count / max(length, 1)) ** torch.rand(()).item()
        drawn = min(max(round(length * density), length), self.count)
        every = torch.randperm(self.count, device=fixed.device)
        return every[:drawn].sort().values[:length]

    def at(self, start: int, stop: int) -> Tensor:
        need_positions(range(start, stop), self.longest, may_go_on=False)
        return self.get_buffer("fixed")[start:stop]

    def extra_repr(self) -> str:
        return f"count={self.count}, longest={self.longest}"
