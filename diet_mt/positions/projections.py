"""Projections of positions, one for queries and one for keys."""

from __future__ import annotations

import torch
from torch import nn

from .base import INIT_STD, AttentionShape


class Projections(nn.Module):
    """Of one layer, from positions (n, E) to queries and to keys: (H|1, E, D) each."""

    def __init__(self, heads: int, shape: AttentionShape) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(heads, shape.embed_dim, shape.head_dim))
        self.key = nn.Parameter(torch.empty(heads, shape.embed_dim, shape.head_dim))
        nn.init.normal_(self.query, std=INIT_STD)
        nn.init.normal_(self.key, std=INIT_STD)
