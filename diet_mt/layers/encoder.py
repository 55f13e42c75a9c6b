"""fairseq's Transformer encoder with positions inside attention."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional

import torch
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from torch import Tensor, nn

from ..positions import ENCODER, AttentionShape
from .beams import regroup
from .multihead import OffsetAttention
from .padding import RightPadded, padding_offsets, right_pad
from .stack import EncoderOut, layer_numbers, replace_dropout, wrap_layer
from .terms import LayerTerms, unpack

# Stock fairseq 0.12.2 gives every encoder layer a second set of weights for a fused kernel that
# knows no offsets.
_FUSED_WEIGHTS = ("in_proj", "out_proj", "fc1", "fc2")


class DietEncoderLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer over :class:`OffsetAttention`, without stock fairseq's fused path."""

    def __init__(self, cfg: Any, return_fc: bool = False) -> None:
        super().__init__(cfg, return_fc=return_fc)
        replace_dropout(self, "TransformerEncoderLayer")
        self.can_use_fastpath = False
        self.load_to_BT = False
        for name in _FUSED_WEIGHTS:
            for kind in ("weight", "bias"):
                self._parameters.pop(f"{name}_{kind}", None)

    def build_self_attention(self, embed_dim: int, cfg: Any) -> OffsetAttention:
        return OffsetAttention(
            embed_dim,
            cfg.encoder.attention_heads,
            scale=cfg.attention_scale_of(cfg.encoder),
            dropout=cfg.attention_dropout,
            self_attention=True,
            q_noise=self.quant_noise,
            qn_block_size=self.quant_noise_block_size,
        )

    def forward(
        self,
        x: Tensor,
        encoder_padding_mask: Optional[Tensor] = None,
        attn_mask: Optional[Tensor] = None,
        **terms: Any,
    ) -> Any:
        """As fairseq's; ``terms`` come from :class:`LayerTerms` and take the place of the masks."""
        given = unpack("self_attn", terms)
        return super().forward(x, encoder_padding_mask if given is None else given, attn_mask)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        nn.Module._load_from_state_dict(self, *args, **kwargs)

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        super().upgrade_state_dict_named(state_dict, name)
        for part in _FUSED_WEIGHTS:
            for kind in ("weight", "bias"):
                state_dict.pop(f"{name}.{part}_{kind}", None)


class DietEncoder(TransformerEncoderBase):
    """Encoder whose layers get the positional term of their attention with their padding mask.

    Output and caches are right-padded, whichever side the sources are padded on.
    """

    # Whether the first token stands for the whole sentence.
    first_is_cls: ClassVar[bool] = False

    def __init__(
        self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding, return_fc: bool = False
    ) -> None:
        super().__init__(cfg, dictionary, embed_tokens, return_fc=return_fc)
        replace_dropout(self, "TransformerEncoder")
        heads, width = cfg.encoder.attention_heads, cfg.encoder.embed_dim
        longest = cfg.max_source_positions
        self.embed_positions = cfg.positions.input_term(longest, width)
        self.attention_shape = AttentionShape(
            cfg.encoder.layers, heads, width // heads, longest, longest, ENCODER, self.first_is_cls
        )
        self.self_attn_positions = cfg.positions.attention_positions(self.attention_shape)

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        return wrap_layer(DietEncoderLayer(cfg, return_fc=self.return_fc), cfg)

    def forward_scriptable(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        return_all_hiddens: bool = False,
        token_embeddings: Optional[Tensor] = None,
    ) -> EncoderOut:
        """fairseq's calling form: ``src_tokens`` (B, S), ``token_embeddings`` (B, S, E) or None.

        Returns fairseq's dictionary, every entry right-padded, and beside its keys
        ``source_offsets`` (the padding as (B, 1, 1, S) offsets, or empty), ``source_columns`` ((B,
        S) columns in ``src_tokens``, or empty where nothing moved) and ``beams`` (rows per
        sentence, 1 until beams are expanded).

        Written out rather than inherited: fairseq's loop passes a bool mask or nothing to its
        layers, and in 0.12.2 chooses a fused path between them.
        """
        batch = right_pad(src_tokens, self.padding_idx)
        if token_embeddings is not None:
            token_embeddings = batch.take(token_embeddings)
        return self.encode(batch, return_all_hiddens, token_embeddings)

    def encode(
        self,
        batch: RightPadded,
        return_all_hiddens: bool = False,
        token_embeddings: Optional[Tensor] = None,
        segments: Optional[Dict[str, Tensor]] = None,
    ) -> EncoderOut:
        """What :meth:`forward_scriptable` returns, of a batch in right-padded form.

        ``token_embeddings`` (B, S, E), aligned with ``batch``; ``segments``: see
        :class:`LayerTerms`.
        """
        x, embedded = self.forward_embedding(batch.tokens, token_embeddings)
        if batch.padding is not None:
            x = x.masked_fill(batch.padding.unsqueeze(-1), 0.0)
        x = x.transpose(0, 1)  # (S, B, E)
        length = x.size(0)
        mask = padding_offsets(batch.padding, x.dtype)
        positions = self.self_attn_positions
        terms = LayerTerms(
            "self_attn",
            None if positions is None else positions.terms(0, length, length),
            mask,
            like=x,
            query_len=length,
            segments=segments,
        )
        states: List[Tensor] = [x] if return_all_hiddens else []
        fc_results: List[Optional[Tensor]] = []
        numbers = layer_numbers(self.layers)
        for layer in self.layers:
            result = layer(x, **terms.of(numbers[layer]))
            x, fc_result = result if isinstance(result, tuple) else (result, None)
            if return_all_hiddens:
                states.append(x)
                fc_results.append(fc_result)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        padding = batch.tokens.eq(self.padding_idx) if batch.padding is None else batch.padding
        return {
            "encoder_out": [x],  # (S, B, E)
            "encoder_padding_mask": [padding],  # (B, S)
            "encoder_embedding": [embedded],  # (B, S, E)
            "encoder_states": states,  # each (S, B, E)
            "fc_results": fc_results,
            "src_tokens": [],
            "src_lengths": [(~padding).sum(dim=1, keepdim=True, dtype=torch.int32)],
            "source_offsets": [] if mask is None else [mask],
            "source_columns": [] if batch.columns is None else [batch.columns],
            "beams": [1],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Row r becomes what row ``new_order[r]`` was; returned as it is where every row stays with
        its sentence.

        Beams of one sentence hold the same encoder output, and beam search reorders them at every
        step: copying it each time is the largest single cost of fairseq's own decoding.
        """
        rows = encoder_out["encoder_out"][0].size(1)
        beams, moved_sentences = regroup(new_order, rows, encoder_out["beams"][0])
        if moved_sentences is None:
            return encoder_out
        moved: EncoderOut = super().reorder_encoder_out(encoder_out, new_order)
        for key in ("source_offsets", "source_columns"):
            moved[key] = [values.index_select(0, new_order) for values in encoder_out[key]]
        moved["beams"] = [beams]
        return moved
