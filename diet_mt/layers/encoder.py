"""Encoders with positions inside attention: fairseq's Transformer, and one with segments."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Sequence, Tuple

import torch
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from torch import Tensor, nn

from ..nn.batch import RightPadded, key_padding_of, regroup, right_pad
from ..positions import ENCODER, AttentionShape, PositionRange, SegmentInput, SegmentPositions
from .multihead import AttentionCall, PositionalAttention, build_attention, for_layers, need_call
from .stack import (
    EncoderOut,
    compute,
    input_positions,
    layer_numbers,
    longest_sentence,
    replace_dropout,
    residual,
    wrap_layer,
)

# Stock fairseq 0.12.2 gives each encoder layer a second set of weights, for a fused kernel without
# positions.
_FUSED_WEIGHTS = tuple(
    f"{part}_{parameter}"
    for part in ("in_proj", "out_proj", "fc1", "fc2")
    for parameter in ("weight", "bias")
)


class DietEncoderLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer with :class:`PositionalAttention`, without its fused path."""

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        replace_dropout(self, "TransformerEncoderLayer")
        self.can_use_fastpath = False
        self.load_to_BT = False
        for name in _FUSED_WEIGHTS:
            self._parameters.pop(name, None)

    def build_self_attention(self, embed_dim: int, cfg: Any) -> PositionalAttention:
        return build_attention(self, embed_dim, cfg, ENCODER, self_attention=True)

    def forward(self, x: Tensor, call: AttentionCall) -> Tensor:
        """``x`` (S, B, E) -> (S, B, E)."""
        need_call(call, AttentionCall, self)
        return compute(self, self._forward, x, call)

    def _forward(self, x: Tensor, call: AttentionCall) -> Tensor:
        options = {"norm_first": self.normalize_before, "drop": self.dropout_module}

        def attention(x: Tensor) -> Tensor:
            return self.self_attn(x, None, call)[0]

        def feed_forward(x: Tensor) -> Tensor:
            return self.fc2(self.activation_dropout_module(self.activation_fn(self.fc1(x))))

        x = residual(x, attention, self.self_attn_layer_norm, **options)
        return residual(x, feed_forward, self.final_layer_norm, **options)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        nn.Module._load_from_state_dict(self, *args, **kwargs)

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        super().upgrade_state_dict_named(state_dict, name)
        for part in _FUSED_WEIGHTS:
            state_dict.pop(f"{name}.{part}", None)


class DietEncoder(TransformerEncoderBase):
    """fairseq's encoder, whose layers receive positions and masks as an :class:`AttentionCall`.

    Its output is right-padded, for sources padded on either side.
    """

    # Whether the first token is [CLS], which represents the whole sentence.
    first_is_cls: ClassVar[bool] = False

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        replace_dropout(self, "TransformerEncoder")
        heads, width = cfg.encoder.attention_heads, cfg.encoder.embed_dim
        longest = cfg.max_source_positions
        self.token_positions = cfg.encoding.token_positions(longest)
        self.embed_positions = input_positions(cfg, longest, width)
        self.attention_shape = AttentionShape(
            *(cfg.encoder.layers, heads, width // heads, longest, longest, ENCODER),
            first_is_cls=self.first_is_cls,
            extrapolation=cfg.beyond_table,
        )
        modules = [layer.self_attn for layer in self.layers.children()]
        self.self_attn_positions = cfg.encoding.attention_positions(self.attention_shape, modules)

    def max_positions(self) -> int:
        return longest_sentence(self.attention_shape, super().max_positions())

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        return wrap_layer(DietEncoderLayer(cfg), cfg)

    def forward_embedding(
        self,
        src_tokens: Tensor,
        token_embedding: Optional[Tensor] = None,
        at: Optional[PositionRange] = None,
    ) -> Tuple[Tensor, Tensor]:
        """fairseq's signature, and ``at``: positions of the tokens; None: those of evaluation.

        ``src_tokens`` (B, S) -> (B, S, E), and the scaled token embeddings alone, (B, S, E).
        """
        words = self.embed_tokens(src_tokens) if token_embedding is None else token_embedding
        x = embedded = self.embed_scale * words
        if self.embed_positions is not None:
            at = self.token_positions.at(0, src_tokens.size(1)) if at is None else at
            x = x + self.embed_positions(src_tokens, at)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout_module(x)
        return x if self.quant_noise is None else self.quant_noise(x), embedded

    def forward_scriptable(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        return_all_hiddens: bool = False,
        token_embeddings: Optional[Tensor] = None,
    ) -> EncoderOut:
        """fairseq's signature: ``src_tokens`` (B, S), ``token_embeddings`` (B, S, E) or None.

        Returns fairseq's dictionary, with all entries right-padded, and in addition ``key_padding``
        (B, S) for cross-attention (empty without padding), ``source_columns`` (B, S), the columns
        in ``src_tokens`` (empty if none moved), ``source_positions`` of the tokens, and ``beams``,
        rows per sentence (1 until beams are expanded).

        fairseq's own method passes only a bool mask or nothing to its layers, and 0.12.2 may choose
        the fused path.
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
        segments: Optional[Sequence[Tuple[Tensor, Tensor]]] = None,
    ) -> EncoderOut:
        """The result of :meth:`forward_scriptable` for a right-padded ``batch``.

        ``token_embeddings``: (B, S, E), in the columns of ``batch``. ``segments``: for each layer,
        see :class:`AttentionCall`.
        """
        at: PositionRange = self.token_positions(batch.tokens.size(1))
        x, embedded = self.forward_embedding(batch.tokens, token_embeddings, at)
        if batch.padding is not None:
            x = x.masked_fill(batch.padding.unsqueeze(-1), 0.0)
        x = x.transpose(0, 1).contiguous()  # (S, B, E)
        key_padding = key_padding_of(batch.padding)
        positions = for_layers(self.self_attn_positions, self.num_layers, at, at)
        states: List[Tensor] = [x] if return_all_hiddens else []
        numbers = layer_numbers(self.layers)
        for layer in self.layers:
            number = numbers[layer]
            pair = None if segments is None else segments[number]
            x = layer(x, AttentionCall(positions[number], key_padding, segments=pair))
            if return_all_hiddens:
                states.append(x)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        padding = batch.tokens.eq(self.padding_idx) if batch.padding is None else batch.padding
        return {
            "encoder_out": [x],  # (S, B, E)
            "encoder_padding_mask": [padding],  # (B, S)
            "encoder_embedding": [embedded],  # (B, S, E)
            "encoder_states": states,  # each (S, B, E)
            "fc_results": [],  # for data2vec
            "src_tokens": [],
            "src_lengths": [(~padding).sum(dim=1, keepdim=True, dtype=torch.int32)],
            "key_padding": [] if key_padding is None else [key_padding],
            "source_columns": [] if batch.columns is None else [batch.columns],
            "source_positions": [at],
            "beams": [1],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Reorders: row r becomes row ``new_order[r]``; the same object if all sentences stay.

        Beams of a sentence have the same encoder output, and fairseq's beam search reorders them in
        every step: copying it each time would take about 3 % of its decoding.
        """
        rows = encoder_out["encoder_out"][0].size(1)
        beams, sentences = regroup(new_order, rows, encoder_out["beams"][0])
        if sentences is None:
            return encoder_out
        moved: EncoderOut = super().reorder_encoder_out(encoder_out, new_order)
        for key in ("key_padding", "source_columns"):
            moved[key] = [values.index_select(0, new_order) for values in encoder_out[key]]
        moved["source_positions"] = encoder_out["source_positions"]
        moved["beams"] = [beams]
        return moved


class DietSentenceEncoder(DietEncoder):
    """:class:`DietEncoder` for BERT and RoBERTa, with [CLS] and segments.

    ``cfg.segment_encoding``: ``input``, ``per-head`` or ``none``. Layers share per-head segments if
    they share positions.
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
        """fairseq's signature, and ``segment_ids`` (B, S) of ``src_tokens``; None: one segment.

        Raises ValueError if the shapes of both differ.
        """
        if segment_ids is None:
            segment_ids = src_tokens.new_zeros(src_tokens.shape)
        elif segment_ids.shape != src_tokens.shape:
            raise ValueError(
                f"segment_ids must be {tuple(src_tokens.shape)} like the tokens, not "
                f"{tuple(segment_ids.shape)}"
            )
        batch = right_pad(src_tokens, self.padding_idx)
        segment_ids = batch.take(segment_ids.unsqueeze(2)).squeeze(2)
        if token_embeddings is not None:
            token_embeddings = batch.take(token_embeddings)
        segments: Optional[List[Tuple[Tensor, Tensor]]] = None
        if self.segment_positions is not None:
            segments = self.segment_positions(segment_ids)
        if self.segment_input is not None:
            if token_embeddings is None:
                token_embeddings = self.embed_tokens(batch.tokens)
            # forward_embedding scales these embeddings like those of the tokens.
            vectors = self.segment_input(segment_ids) / self.embed_scale
            token_embeddings = token_embeddings + vectors
        return self.encode(batch, return_all_hiddens, token_embeddings, segments)
