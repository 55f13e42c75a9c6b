"""The layout of a batch: right-padded rows, and runs of rows that share a source sentence."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .compiled import may_read


class RightPadded(NamedTuple):
    """A batch whose real tokens come first in every row.

    Columns are then positions, and one bias serves the whole batch.

    Attributes:
        tokens: (B, T).
        padding: (B, T) bool, True at padding, or None without any.
        columns: (B, T), the original column of each column, or None where nothing moved.
    """

    tokens: Tensor
    padding: Optional[Tensor]
    columns: Optional[Tensor]

    def take(self, values: Tensor) -> Tensor:
        """``values`` (B, T, E) in the original columns -> in those of ``tokens``."""
        return values if self.columns is None else gather_columns(values, self.columns)

    def restore(self, values: Tensor) -> Tensor:
        """``values`` (B, T, E) in the columns of ``tokens`` -> in the original ones."""
        return values if self.columns is None else gather_columns(values, self.columns.argsort(1))


def right_pad(tokens: Tensor, pad: int) -> RightPadded:
    """``tokens`` (B, T), by default padded on the left by fairseq, with padding at the end.

    On a CPU, a batch without padding, or with padding at the end, is returned unchanged. On other
    devices and in compiled graphs, values are not read, and ``columns`` are always given.
    """
    padding = tokens.eq(pad)
    if may_read(tokens):
        if not bool(padding.any()):
            return RightPadded(tokens, None, None)
        if not bool((padding[:, :-1] & ~padding[:, 1:]).any()):
            return RightPadded(tokens, padding, None)
    columns = padding.to(torch.uint8).argsort(dim=1, stable=True)
    return RightPadded(tokens.gather(1, columns), padding.gather(1, columns), columns)


def gather_columns(values: Tensor, columns: Tensor) -> Tensor:
    """``values`` (B, T, E), ``columns`` (B, T) -> (B, T, E) with ``values[b, columns[b, t]]``."""
    return values.gather(1, columns.unsqueeze(-1).expand(-1, -1, values.size(-1)))


def key_padding_of(padding: Optional[Tensor]) -> Optional[Tensor]:
    """``padding`` (B, S), True at padding -> the key padding mask of attention, or None.

    Rows of padding alone are not masked: their softmax would be 0/0, and the NaN would reach the
    gradient of the whole batch. The output of such a row is never used.
    """
    return None if padding is None else padding & ~padding.all(dim=1, keepdim=True)


def regroup(order: Tensor, rows: int, beams: int) -> Tuple[int, Optional[Tensor]]:
    """The runs of rows after reordering: row r becomes what row ``order[r]`` was.

    A run of ``beams`` rows has one source sentence. What depends on the source alone is computed,
    stored and moved once per run.

    Args:
        order: (rows',) indices of old rows.
        rows: number of old rows, in runs of ``beams``.
        beams: length of the old runs.

    Returns:
        The new length of runs (1 where they are irregular: always valid, but slower), and the old
        run of each new one, (rows' / length,), or None where every row stays in its run.
    """
    sentence = order.div(beams, rounding_mode="floor")
    if order.numel() == rows:
        own = torch.arange(rows, device=order.device).div_(beams, rounding_mode="floor")
        if torch.equal(sentence, own):
            return beams, None
    length = order.numel() // rows if beams == 1 else beams
    if length < 2 or order.numel() % length:
        return 1, sentence
    runs = sentence.view(-1, length)
    whole = bool((runs == runs[:, :1]).all())
    return (length, runs[:, 0]) if whole else (1, sentence)
