"""Token embeddings that leave columns free for positions."""

from __future__ import annotations

import torch.nn.functional as F
from fairseq.modules.quantization.scalar.modules import IntEmbedding
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
        return _padded(super().forward(tokens), self.embedding_dim)


class QuantizedPaddedEmbedding(IntEmbedding):
    """What ``--quant-noise-scalar`` makes of :class:`PaddedEmbedding`: fairseq's quantized
    embedding, whose rows are followed by zeros as well.
    """

    def forward(self, tokens: Tensor) -> Tensor:
        """``tokens`` (...) -> (..., E)."""
        return _padded(super().forward(tokens), self.embedding_dim)


def _padded(rows: Tensor, width: int) -> Tensor:
    """``rows`` (..., E') -> (..., ``width``)."""
    return F.pad(rows, (0, width - rows.size(-1)))
