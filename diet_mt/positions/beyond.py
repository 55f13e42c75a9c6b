"""Positions beyond the end of a table: what is read where sentences are longer than it.

A table that is learned says nothing of positions that no sentence of training had. There are three
answers (``--beyond-table``):

- ``refuse``: an error, which names the length and the table's;
- ``clip``: all that is beyond counts as the last position, or the furthest distance, as Shaw et al.
  2018 (arXiv:1803.02155, section 3.2) clip theirs;
- ``repeat``: positions begin again, as Beltagy et al. 2020 (Longformer, arXiv:2004.05150) lengthen
  a table that was trained: i counts as i mod n. A distance begins again at 0, on its own side.

What follows from a formula, such as sinusoids, goes on with the formula in both.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .spans import Span, tokens_in

REFUSE, CLIP, REPEAT = BEYOND = ("refuse", "clip", "repeat")


def read(table: Tensor, at: Span, beyond: str, *, dim: int = 0, zero: int = 0) -> Tensor:
    """Entries ``at`` these numbers of ``table`` along ``dim``, and of a range what stands for those
    beyond the ends of the table; ``zero``: the entry of position or distance 0.
    """
    if isinstance(at, Tensor):
        return table.index_select(dim, at)
    size = table.size(dim)
    if at.start >= 0 and at.stop <= size:
        return table.narrow(dim, at.start, tokens_in(at))
    assert beyond != REFUSE, "who has a table has refused"
    found = torch.arange(at.start - zero, at.stop - zero, device=table.device)
    if beyond == CLIP:
        found = found.clamp(-zero, size - 1 - zero)
    else:
        found = torch.where(found < 0, -(-found % (zero + 1)), found % (size - zero))
    return table.index_select(dim, found + zero)
