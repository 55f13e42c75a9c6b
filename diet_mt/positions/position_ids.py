"""Positions of tokens, consecutive or randomized, and table lookups up to and beyond the end.

A learned table has no entries beyond its length; ``--beyond-table`` selects those read there:

- ``refuse``: an error that names both lengths;
- ``clip``: the last position, or the largest distance, as Shaw et al. 2018 (arXiv:1803.02155,
  section 3.2) clip distances;
- ``repeat``: position i mod n, as Beltagy et al. 2020 (Longformer, arXiv:2004.05150) extend a
  trained table. Distances restart at 0 on either side.

With ``clip`` and ``repeat``, formulas such as sinusoids continue unchanged.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn

from ..nn.compiled import is_exporting
from ..system.errors import UserError

# Positions of T tokens: a range of step 1, or a tensor (T,) of non-descending integers: randomized,
# in decoding on a GPU (the last one may be repeated) and in exported programs.
PositionRange = range | Tensor

# Base of frequencies (Vaswani et al. 2017).
BASE = 10000.0

REFUSE, CLIP, REPEAT = EXTRAPOLATIONS = ("refuse", "clip", "repeat")


def num_positions(positions: PositionRange) -> int:
    """The number T of positions; torch.compile does not support ``len`` of a range that varies."""
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
    """Angles per position, base^(-2c/E) for pair c: (E/2,) float64; for bases (T, 1), (T, E/2)."""
    pair = torch.arange(0, width, 2, dtype=torch.float64, device=device) / width
    return torch.pow(base, -pair)


def required_size(positions: PositionRange) -> int:
    """Entries that a table needs; 0 for a tensor, which is not checked."""
    return 0 if isinstance(positions, Tensor) else positions.stop


def check_size(positions: PositionRange, size: int, *, can_extrapolate: bool) -> None:
    """Raises :class:`UserError` if a table of ``size`` entries is too short.

    ``can_extrapolate``: whether the model has the option ``--beyond-table``.
    """
    length = required_size(positions)
    if length > size:
        option = ", or set --beyond-table to clip or repeat"
        raise UserError(
            f"a sentence of {length} tokens is longer than the {size} positions that this model "
            "was built with; train with a larger --max-source-positions or "
            "--max-target-positions, or filter such sentences"
            f"{option if can_extrapolate else ''}"
        )


def read_table(
    table: Tensor, at: PositionRange, extrapolation: str, *, dim: int = 0, zero: int = 0
) -> Tensor:
    """Entries of ``table`` along ``dim``; a range of indices is extrapolated beyond its ends.

    ``at``: the indices; ``zero``: the index of position or distance 0.
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
    """``table`` cut to ``size`` entries along ``dim``, or extended by the rule ``extrapolation``.

    ``zeros``: the index of position or distance 0, before and after. Raises :class:`UserError` for
    an extension with ``refuse``.
    """
    start = zeros[0] - zeros[1]
    at = range(start, start + size)
    if extrapolation == REFUSE and not 0 <= start <= at.stop <= table.size(dim):
        raise UserError(
            f"the checkpoint has a table of {table.size(dim)} positions, this model one of {size}; "
            "set --beyond-table to clip or repeat, or give the same "
            "--max-source-positions and --max-target-positions"
        )
    return read_table(table, at, extrapolation, dim=dim, zero=zeros[0])


class TokenPositions(nn.Module):
    """Consecutive positions from 0."""

    longest = sys.maxsize  # most tokens of a sequence

    def forward(self, length: int) -> PositionRange:
        """Positions of the T = ``length`` tokens of every sentence in a forward pass, ascending."""
        return self.at(0, length)

    def at(self, start: int, stop: int) -> PositionRange:
        """Positions of tokens ``start`` to ``stop - 1`` in evaluation."""
        if is_exporting():  # a range would fix the length
            return torch.arange(start, stop)
        return range(start, stop)


class RandomizedPositions(TokenPositions):
    """Randomized positions (Ruoss et al. 2023, arXiv:2305.16843, section 3).

    The T tokens of a sequence have T of the N = ``count`` positions 0 to N - 1, drawn without
    replacement and sorted, so that training covers the positions of longer sequences.

    All sentences of a forward pass, all layers and the input share one draw; source and target have
    separate draws. Draws use torch's generator, so they are repeated by the seed that fairseq sets
    for every update.

    Where we differ: the paper draws in evaluation as well, for the length of the sequence. A
    decoder does not know the length of its output, and a translation must not depend on its batch.
    Evaluation therefore uses one draw of ``longest`` positions with a fixed seed; a sentence has
    the first T of them. These are denser than T of N; so training draws m positions, with m
    log-uniform from T to N, and uses the first T.

    Raises :class:`UserError` for more than ``longest`` tokens.
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
        stretch = (self.count / max(length, 1)) ** torch.rand(()).item()
        num_drawn = min(max(round(length * stretch), length), self.count)
        shuffled = torch.randperm(self.count, device=fixed.device)
        return shuffled[:num_drawn].sort().values[:length]

    def at(self, start: int, stop: int) -> Tensor:
        check_size(range(start, stop), self.longest, can_extrapolate=False)
        return self.get_buffer("fixed")[start:stop]

    def extra_repr(self) -> str:
        return f"count={self.count}, longest={self.longest}"
