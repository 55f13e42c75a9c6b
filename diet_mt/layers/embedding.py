"""Token embeddings that leave columns free for positions."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class PaddedEmbedding(nn.Embedding):
    """Embedding whose rows are followed by zeros up to the width of the stack.

    ``weight`` (V, E') is as narrow as the words; what comes out, and ``embedding_dim``, by which
    fairseq sizes the stack, is E.
    """

    @classmethod
    def around(cls, narrow: nn.Embedding, embed_dim: int) -> PaddedEmbedding:
        """Takes over the weights of ``narrow``."""
        count, width = narrow.weight.shape
        wide = cls(count, width, padding_idx=narrow.padding_idx, _weight=narrow.weight.detach())
        wide.embedding_dim = embed_dim
        return wide

    def forward(self, tokens: Tensor) -> Tensor:
        """``tokens`` (...) -> (..., E)."""
        return F.pad(super().forward(tokens), (0, self.embedding_dim - self.weight.size(1)))
