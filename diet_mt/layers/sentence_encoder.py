"""The encoder of BERT and RoBERTa: it starts with [CLS] and knows which segment a token is of."""

from __future__ import annotations

from typing import Any, ClassVar, List, Optional, Tuple

from torch import Tensor, nn

from ..positions import SegmentInput, SegmentPositions
from .encoder import DietEncoder
from .padding import right_pad
from .stack import EncoderOut


class DietSentenceEncoder(DietEncoder):
    """:class:`DietEncoder` with segments at the input, per head, or nowhere
    (``cfg.segment_encoding``).

    Per head, they are shared by the layers where positions are.
    """

    first_is_cls: ClassVar[bool] = True

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.segment_input: Optional[SegmentInput] = None
        self.segment_positions: Optional[SegmentPositions] = None
        if cfg.segment_encoding == "input":
            self.segment_input = SegmentInput(cfg.num_segments, cfg.encoder.embed_dim)
        elif cfg.segment_encoding == "per-head":
            shared = cfg.encoding.sharing == "layer-wise"
            self.segment_positions = SegmentPositions(
                self.attention_shape, "layer-wise" if shared else "none", cfg.num_segments
            )

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        return_all_hiddens: bool = False,
        token_embeddings: Optional[Tensor] = None,
        segment_ids: Optional[Tensor] = None,
    ) -> EncoderOut:
        """fairseq's signature, and ``segment_ids`` (B, S), aligned with ``src_tokens``; None:
        one segment. What comes out is right-padded.

        Raises UserError for a segment that the model does not have, ValueError for segments of
        another shape than the tokens.
        """
        if segment_ids is not None and segment_ids.shape != src_tokens.shape:
            raise ValueError(
                f"segment_ids must be {tuple(src_tokens.shape)} like the tokens, not "
                f"{tuple(segment_ids.shape)}"
            )
        batch = right_pad(src_tokens, self.padding_idx)
        if token_embeddings is not None:
            token_embeddings = batch.take(token_embeddings)
        segments: Optional[List[Tuple[Tensor, Tensor]]] = None
        if self.segment_input is not None or self.segment_positions is not None:
            if segment_ids is None:
                segment_ids = batch.tokens.new_zeros(batch.tokens.shape)
            else:
                segment_ids = batch.take_tokens(segment_ids)
            if self.segment_positions is not None:
                segments = self.segment_positions(segment_ids)
            if self.segment_input is not None:
                if token_embeddings is None:
                    token_embeddings = self.embed_tokens(batch.tokens)
                # fairseq scales what it is given as it scales the words.
                vectors = self.segment_input(segment_ids) / self.embed_scale
                token_embeddings = token_embeddings + vectors
        return self.encode(batch, return_all_hiddens, token_embeddings, segments)
