"""Segment encodings: at the input, or per head inside attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..nn.precision import no_autocast
from ..system.errors import UserError
from .base import AttentionShape, LayerTables, Table, normal

SEGMENT_ENCODINGS = ("none", "input", "per-head")


def one_hot(segments: Tensor, count: int) -> Tensor:
    """(B, S) integers -> (B, S, N) float32. Raises :class:`UserError` outside 0 to N - 1."""
    segments = segments.long()
    if segments.device.type != "meta" and segments.numel():
        lowest, highest = torch.stack(torch.aminmax(segments)).tolist()  # one wait for a GPU
        if lowest < 0 or highest >= count:
            raise UserError(
                f"segment {lowest if lowest < 0 else highest} is not in 0 to {count - 1}; "
                "give as many as the model was built with (--num-segments)"
            )
    return F.one_hot(segments, count).to(torch.float32)


class SegmentInput(nn.Module):
    """A vector per segment, (N, E), added to the embeddings (Devlin et al. 2018, section 3)."""

    def __init__(self, count: int, embed_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(normal((count, embed_dim)))

    def forward(self, segments: Tensor) -> Tensor:
        """(B, S) -> (B, S, E)."""
        rows = one_hot(segments, self.weight.size(0)).to(self.weight.dtype)
        with no_autocast(rows.device):
            return rows @ self.weight


class SegmentPositions(LayerTables):
    """Segments in the logits of each head (Chen et al. 2021, section 3.1, equations 1 and 2).

    E_S[S(i), S(j)] is added to the logit of query i and key j. ``weight``: E_S of one layer, (H|1,
    N, N), a row per segment of the query, a column per segment of the key. It starts at 0, so that
    segments added in fine-tuning initially change nothing (appendix A, "supplemental segment
    encoding").
    """

    def __init__(self, shape: AttentionShape, sharing: str | None, count: int) -> None:
        super().__init__(
            shape, sharing, lambda heads: Table(weight=torch.zeros(heads, count, count))
        )
        self.count = count

    def forward(self, segments: Tensor) -> list[tuple[Tensor, Tensor]]:
        """``segments`` (B, S) -> two factors of the bias of each of the L layers.

        (B, H|1, S, N) of the queries and (B, 1, S, N) of the keys; the bias itself, their product
        over N, would be B H S S numbers per layer.
        """
        tables = self.stacked("weight")  # (L|1, H|1, N, N)
        keys = one_hot(segments, self.count).to(tables.dtype)  # (B, S, N)
        with no_autocast(keys.device):
            rows = torch.einsum("bsn,lhnm->lbhsm", keys, tables)
        return self.per_layer([(row, keys[:, None]) for row in rows.unbind(0)])
