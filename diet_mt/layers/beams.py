"""Which rows of a decoding batch belong to the same source sentence.

Rows stand in runs of ``beams``, one run per sentence, and hold the same source. What depends on the
source alone is therefore computed, kept and moved once per sentence.
"""

from __future__ import annotations

from typing import Optional, Tuple

import torch
from torch import Tensor


def regroup(order: Tensor, rows: int, beams: int) -> Tuple[int, Optional[Tensor]]:
    """What reordering does to runs of rows: row r becomes what row ``order[r]`` was.

    Args:
        order: (rows',) indices into the old rows.
        rows: number of old rows, in runs of ``beams``.

    Returns:
        The new length of the runs (1 where they came out irregular: always true, only slower), and
        for each new run the old sentence that it belongs to, (rows' / length,), or None where every
        row stays with its sentence.
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
