"""A head that marks a span of the input: where an answer begins and where it ends."""

from __future__ import annotations

import logging
from typing import Any, Dict, Optional, Tuple

from fairseq.models.roberta.model import RobertaModel
from torch import Tensor, nn

from ..positions.base import INIT_STD

logger = logging.getLogger(__name__)


class SpanHead(nn.Module):
    """Devlin et al. 2018, section 4.2: the logits of a token are the products of its features with
    two vectors, one for the start and one for the end.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(embed_dim, 2)
        nn.init.normal_(self.out.weight, std=INIT_STD)
        nn.init.zeros_(self.out.bias)

    def forward(self, features: Tensor) -> Tensor:
        """(B, S, E) -> (B, S, 2): logits of the start and of the end."""
        logits: Tensor = self.out(features)
        return logits


class SpanHeadModel(RobertaModel):
    """RoBERTa that can have a :class:`SpanHead`, beside its other heads.

    It is not one of ``classification_heads``, each of which fairseq takes for a dense layer and a
    projection when it loads a checkpoint.
    """

    def __init__(self, args: Any, encoder: Any) -> None:
        super().__init__(args, encoder)
        self.span_head: Optional[SpanHead] = None

    def register_span_head(self) -> None:
        """Adds a new head."""
        self.span_head = SpanHead(self.args.encoder_embed_dim)

    def forward(
        self, src_tokens: Tensor, *args: Any, use_span_head: bool = False, **kwargs: Any
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """RoBERTa's own signature; with ``use_span_head``, the output is that of the head.

        Within ``forward``, so that wrappers for several devices see what is used.
        """
        if not use_span_head:
            out: Tuple[Tensor, Dict[str, Any]] = super().forward(src_tokens, *args, **kwargs)
            return out
        assert self.span_head is not None
        features, extra = super().forward(src_tokens, *args, **{**kwargs, "features_only": True})
        return self.span_head(features), extra

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """A checkpoint without this head, a pretrained one, gets the model's own, fresh one; if it
        has any part of one, it must have it all. A model without drops that of a checkpoint, as
        fairseq drops heads of other tasks.
        """
        super().upgrade_state_dict_named(state_dict, name)
        prefix = f"{name}.span_head." if name else "span_head."
        theirs = [key for key in state_dict if key.startswith(prefix)]
        if self.span_head is None:
            if theirs:
                logger.warning("the checkpoint's span head is left out: this task has none")
            for key in theirs:
                del state_dict[key]
            return
        if theirs:
            return
        logger.info("the checkpoint has no span head: it starts fresh")
        for key, value in self.span_head.state_dict().items():
            state_dict[prefix + key] = value
