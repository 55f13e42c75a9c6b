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

REFUSE, CLIP, REPEAT = BEYOND = ("refuse", "clip", "repeat")


def read(
    table: Tensor, start: int, stop: int | None, beyond: str, *, dim: int = 0, zero: int = 0
) -> Tensor:
    """Entries ``start .. stop - 1`` (None: to the end) of ``table`` along ``dim``, and what stands
    for those beyond its ends; ``zero``: the entry of position or distance 0.
    """
    size = table.size(dim)
    stop = size if stop is None else stop
    if start >= 0 and stop <= size:
        return table.narrow(dim, start, stop - start)
    assert beyond != REFUSE  # who has a table has refused
    place = torch.arange(start - zero, stop - zero, device=table.device)
    if beyond == CLIP:
        place = place.clamp(-zero, size - 1 - zero)
    else:
        place = torch.where(place < 0, -(-place % (zero + 1)), place % (size - zero))
    return table.index_select(dim, place + zero)
