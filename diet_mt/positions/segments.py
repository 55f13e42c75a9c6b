"""Which segment a token belongs to: at the input, or per head inside attention."""

from __future__ import annotations

from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import UserError
from .base import INIT_STD, AttentionShape, LayerTables, no_autocast

SEGMENT_ENCODINGS = ("none", "input", "per-head")


def one_hot(segments: Tensor, count: int) -> Tensor:
    """(B, S) integers -> (B, S, N) float32.

    Raises:
        UserError: a segment is not between 0 and N - 1.
    """
    segments = segments.long()
    if segments.device.type != "meta" and segments.numel():
        lowest, highest = torch.stack(torch.aminmax(segments)).tolist()  # one wait for a GPU
        if lowest < 0 or highest >= count:
            raise UserError(
                f"segments go from 0 to {count - 1}, found {lowest if lowest < 0 else highest}; "
                "give as many as the model was built with (--num-segments)"
            )
    return F.one_hot(segments, count).to(torch.float32)


class SegmentInput(nn.Module):
    """Devlin et al. 2018, section 3: a vector per segment, (N, E), added to the embeddings."""

    def __init__(self, count: int, embed_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, embed_dim))
        nn.init.normal_(self.weight, std=INIT_STD)

    def forward(self, segments: Tensor) -> Tensor:
        """(B, S) -> (B, S, E)."""
        own = one_hot(segments, self.weight.size(0)).to(self.weight.dtype)
        with no_autocast(own.device):
            return own @ self.weight


class SegmentTable(nn.Module):
    """E_S of one layer: (H|1, N, N), from the query's segment (row) to the key's (column)."""

    def __init__(self, heads: int, count: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(heads, count, count))


class SegmentPositions(LayerTables):
    """Chen et al. 2021, section 3.2, equation 2: E_S[S(i), S(j)] is added to the logits of query i
    and key j, for every head and layer. The tables start at 0, so that a model trained without them
    computes at first what it did before (appendix A, "supplemental segment encoding").
    """

    def __init__(self, shape: AttentionShape, sharing: Optional[str], count: int) -> None:
        super().__init__(shape, sharing, lambda heads: SegmentTable(heads, count))
        self.count = count

    def forward(self, segments: Tensor) -> List[Tuple[Tensor, Tensor]]:
        """``segments`` (B, S) -> for each of the L layers two factors, whose product over N is the
        bias: (B, H|1, S, N) of the queries, (B, 1, S, N) of the keys.

        As factors, because the bias itself would be B H S S numbers in every layer.
        """
        tables = self.stacked("weight")  # (L|1, H|1, N, N)
        own = one_hot(segments, self.count).to(tables.dtype)  # (B, S, N)
        with no_autocast(own.device):
            rows = torch.einsum("bsn,lhnm->lbhsm", own, tables)
        return self.each([(row, own[:, None]) for row in rows.unbind(0)])
