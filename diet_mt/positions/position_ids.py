"""Positions of tokens, consecutive or randomized, and table lookups up to and beyond the end.

A learned table has no entry for positions that no training sentence reached. ``--beyond-table``
chooses what is read there:

- ``refuse``: an error that names both lengths;
- ``clip``: the last position, or the largest distance, as Shaw et al. 2018 (arXiv:1803.02155,
  section 3.2) clip theirs;
- ``repeat``: the table from its start again, as Beltagy et al. 2020 (Longformer, arXiv:2004.05150)
  extend a trained table: i is read at i mod n. Distances restart at 0, on their own side.

Formulas, such as sinusoids, continue unchanged in both.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn

from ..nn.compiled import is_exporting
from ..system.errors import UserError

# Positions of T tokens: a range without steps or, randomized, a tensor (T,) of ascending integers.
PositionRange = range | Tensor

# Base of frequencies (Vaswani et al. 2017).
BASE = 10000.0

REFUSE, CLIP, REPEAT = EXTRAPOLATIONS = ("refuse", "clip", "repeat")


def num_positions(positions: PositionRange) -> int:
    """T. By the ends of a range: torch.compile takes no ``len`` where they change."""
    return positions.numel() if isinstance(positions, Tensor) else positions.stop - positions.start


def distance_limits(queries: range, keys: range) -> tuple[int, int]:
    """The lowest and the highest distance i - j."""
    return queries.start - (keys.stop - 1), queries.stop - 1 - keys.start


def as_tensor(positions: PositionRange, device: torch.device) -> Tensor:
    """Positions as integers, (T,)."""
    if isinstance(positions, Tensor):
        return positions
    return torch.arange(positions.start, positions.stop, device=device)


def frequencies(width: int, device: torch.device, base: float | Tensor = BASE) -> Tensor:
    """Angle per position of each pair of E columns, base^(-2c/E): (E/2,) in float64, or (T, E/2) of
    bases (T, 1).
    """
    pair = torch.arange(0, width, 2, dtype=torch.float64, device=device) / width
    return torch.pow(base, -pair)


def required_size(positions: PositionRange) -> int:
    """Entries that a table needs; 0 for randomized positions, for which tables are large enough."""
    return 0 if isinstance(positions, Tensor) else positions.stop


def check_size(positions: PositionRange, size: int, *, can_extrapolate: bool) -> None:
    """Raises :class:`UserError` where a table of ``size`` entries is too short.

    ``can_extrapolate``: whether the model has the option ``--beyond-table``.
    """
    length = required_size(positions)
    if length > size:
        option = ", or choose by --beyond-table what is read there (clip, repeat)"
        raise UserError(
            f"a sentence of {length} tokens is longer than the {size} positions that this model "
            "was built with; train with a larger --max-source-positions or "
            "--max-target-positions, or filter such sentences"
            f"{option if can_extrapolate else ''}"
        )


def read_table(
    table: Tensor, at: PositionRange, extrapolation: str, *, dim: int = 0, zero: int = 0
) -> Tensor:
    """Entries ``at`` these indices of ``table`` along ``dim``, extrapolated beyond its ends.

    ``zero``: the index of position or distance 0.
    """
    if isinstance(at, Tensor):
        return table.index_select(dim, at)
    size = table.size(dim)
    if at.start >= 0 and at.stop <= size:
        return table.narrow(dim, at.start, num_positions(at))
    assert extrapolation != REFUSE, "the caller checks the size"
    position = torch.arange(at.start - zero, at.stop - zero, device=table.device)
    if extrapolation == CLIP:
        position = position.clamp(-zero, size - 1 - zero)
    else:
        position = torch.where(position < 0, -(-position % (zero + 1)), position % (size - zero))
    return table.index_select(dim, position + zero)


def resized_table(
    table: Tensor, size: int, extrapolation: str, *, dim: int = 0, zeros: tuple[int, int] = (0, 0)
) -> Tensor:
    """``table`` cut to ``size`` entries along ``dim``, or extended as positions beyond it are read.

    ``zeros``: the index of position or distance 0, before and after.
    """
    start = zeros[0] - zeros[1]
    at = range(start, start + size)
    if extrapolation == REFUSE and not 0 <= start <= at.stop <= table.size(dim):
        raise UserError(
            f"the checkpoint has a table of {table.size(dim)} positions, this model one of {size}; "
            "choose by --beyond-table how it is extended (clip, repeat), or give the same "
            "--max-source-positions and --max-target-positions"
        )
    return read_table(table, at, extrapolation, dim=dim, zero=zeros[0])


class TokenPositions(nn.Module):
    """Consecutive positions from 0."""

    longest = sys.maxsize  # sequence, in tokens

    def forward(self, length: int) -> PositionRange:
        """Positions of the T = ``length`` tokens of every sentence of a forward pass, ascending."""
        return self.at(0, length)

    def at(self, start: int, stop: int) -> PositionRange:
        """Positions in evaluation of the tokens ``start .. stop - 1``."""
        if is_exporting():  # a range has one length only
            return torch.arange(start, stop)
        return range(start, stop)


class RandomizedPositions(TokenPositions):
    """Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of
    Transformers" (arXiv:2305.16843), section 3: the T tokens of a sequence have T of the ``count``
    N positions 0 to N - 1, drawn without replacement and sorted, so that training covers the
    positions of sequences longer than its own.

    One draw for all sentences of a forward pass, all layers and the input; source and target are
    drawn separately. The draws are torch's own, so the seed that fairseq sets for every update
    repeats them.

    Where we differ: the paper draws at test as well, for the length of the sequence. A decoder does
    not know the length of its output, and a translation must not depend on its batch. Evaluation
    therefore has one draw of ``longest`` positions, from a fixed seed, of which a sentence takes
    the first T. They are denser than T of N; to train for that, training draws m positions, m
    log-uniform from T to N, and takes the first T. Training is not limited to ``longest``: a model
    may be decoded with room for more tokens.
    """

    def __init__(self, count: int, longest: int) -> None:
        super().__init__()
        self.count, self.longest = count, longest
        shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(1))
        self.register_buffer("fixed", shuffled[:longest].sort().values, persistent=False)

    def forward(self, length: int) -> Tensor:
        fixed = self.at(0, length)
        if not self.training:
            return fixed
        density = (self.count / max(length, 1)) ** torch.rand(()).item()
        drawn = min(max(round(length * density), length), self.count)
        shuffled = torch.randperm(self.count, device=fixed.device)
        return shuffled[:drawn].sort().values[:length]

    def at(self, start: int, stop: int) -> Tensor:
        check_size(range(start, stop), self.longest, can_extrapolate=False)
        return self.get_buffer("fixed")[start:stop]

    def extra_repr(self) -> str:
        return f"count={self.count}, longest={self.longest}"
