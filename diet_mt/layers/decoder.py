"""fairseq's Transformer decoder with positions inside self- and cross-attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor, nn

from ..nn.batch import RightPadded, key_padding_of, right_pad
from ..positions import CROSS, DECODER, AttentionShape, PositionRange
from ..system.errors import UserError
from .multihead import (
    AttentionCall,
    DecoderCall,
    PositionalAttention,
    build_attention,
    for_layers,
    need_call,
)
from .run import DecodingRun
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

# fairseq's incremental state, and the key of a decoding run in it.
IncrementalState = Dict[str, Dict[str, Any]]
_RUN = "diet_mt.run"


class DietDecoderLayer(TransformerDecoderLayerBase):
    """fairseq's decoder layer with :class:`PositionalAttention`."""

    def __init__(self, cfg: Any, no_encoder_attn: bool = False) -> None:
        super().__init__(cfg, no_encoder_attn)
        self.cfg = cfg
        replace_dropout(self, "TransformerDecoderLayer")

    def build_self_attention(
        self, embed_dim: int, cfg: Any, add_bias_kv: bool = False, add_zero_attn: bool = False
    ) -> PositionalAttention:
        return build_attention(self, embed_dim, cfg, DECODER, self_attention=True)

    def build_encoder_attention(self, embed_dim: int, cfg: Any) -> PositionalAttention:
        widths = dict.fromkeys(("kdim", "vdim"), cfg.encoder.embed_dim)
        return build_attention(
            self, embed_dim, cfg, CROSS, encoder_decoder_attention=True, **widths
        )

    def forward(self, x: Tensor, call: DecoderCall) -> Tuple[Tensor, Optional[Tensor]]:
        """``x`` (T, B, E) -> (T, B, E), and cross-attention weights (B, H, T, S) or None."""
        need_call(call, DecoderCall, self)
        return compute(self, self._forward, x, call)

    def _forward(self, x: Tensor, call: DecoderCall) -> Tuple[Tensor, Optional[Tensor]]:
        options = {"norm_first": self.normalize_before, "drop": self.dropout_module}
        weights: Optional[Tensor] = None

        def cross_attention(x: Tensor) -> Tensor:
            nonlocal weights
            x, weights = self.encoder_attn(x, call.source, call.encoder_attn)
            return x

        def self_attention(x: Tensor) -> Tensor:
            return self._scaled_heads(self.self_attn(x, None, call.self_attn)[0])

        x = residual(x, self_attention, self.self_attn_layer_norm, **options)
        if self.encoder_attn is not None and call.encoder_attn is not None:
            x = residual(x, cross_attention, self.encoder_attn_layer_norm, **options)
        x = residual(x, self._feed_forward, self.final_layer_norm, keep=self.w_resid, **options)
        return x, weights

    def _scaled_heads(self, x: Tensor) -> Tensor:
        """fairseq's ``--scale-heads`` and ``--scale-attn`` (NormFormer), if enabled."""
        if self.c_attn is not None:
            x = (x.unflatten(-1, (self.nh, -1)) * self.c_attn[:, None]).flatten(-2)
        return x if self.attn_ln is None else self.attn_ln(x)

    def _feed_forward(self, x: Tensor) -> Tensor:
        x = self.activation_dropout_module(self.activation_fn(self.fc1(x)))
        return self.fc2(x if self.ffn_layernorm is None else self.ffn_layernorm(x))


class DietDecoder(TransformerDecoderBase):
    """fairseq's decoder, whose layers receive positions and masks as a :class:`DecoderCall`.

    ``need_attn``: outside of training, ``extra["attn"]`` holds the attention of the last layer by
    default. Set by fairseq's ``make_generation_fast_``.
    """

    def __init__(
        self,
        cfg: Any,
        dictionary: Any,
        embed_tokens: nn.Embedding,
        no_encoder_attn: bool = False,
        output_projection: Optional[nn.Module] = None,
    ) -> None:
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        replace_dropout(self, "TransformerDecoder")
        self.need_attn = False
        heads, width = cfg.decoder.attention_heads, cfg.decoder.embed_dim
        targets, sources = cfg.max_target_positions, cfg.max_source_positions
        self.token_positions = cfg.encoding.token_positions(targets)
        self.embed_positions = input_positions(cfg, targets, width)
        self.attention_shape = AttentionShape(
            *(cfg.decoder.layers, heads, width // heads, targets, targets, DECODER),
            extrapolation=cfg.beyond_table,
        )
        modules = [layer.self_attn for layer in self.layers.children()]
        self.self_attn_positions = cfg.encoding.attention_positions(self.attention_shape, modules)
        self.encoder_attn_positions = None
        if not no_encoder_attn:
            shape = replace(self.attention_shape, max_keys=sources, kind=CROSS)
            modules = [layer.encoder_attn for layer in self.layers.children()]
            self.encoder_attn_positions = cfg.encoding.attention_positions(shape, modules)

    def max_positions(self) -> int:
        return longest_sentence(self.attention_shape, super().max_positions())

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        return wrap_layer(DietDecoderLayer(cfg, no_encoder_attn), cfg)

    def make_generation_fast_(self, need_attn: bool = False, **kwargs: Any) -> None:
        """Hook of fairseq's ``prepare_for_inference_``; ``need_attn``: ``--print-alignment``."""
        self.need_attn = need_attn

    def extract_features_scriptable(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[EncoderOut],
        incremental_state: Optional[IncrementalState] = None,
        full_context_alignment: bool = False,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
    ) -> Tuple[Tensor, Dict[str, List[Optional[Tensor]]]]:
        """fairseq's signature: ``prev_output_tokens`` (B, T) -> features (B, T, E) and extras.

        ``extra["attn"]``: cross-attention (B, T, S) of ``alignment_layer``, averaged over its first
        ``alignment_heads`` heads, for target and source tokens as given; or None. fairseq's own
        method passes only the last token to its layers in incremental decoding, without its
        position, which cross-attention needs.
        """
        if alignment_layer is None and self.need_attn and not self.training:
            alignment_layer = self.num_layers - 1
        need_weights = -1 if alignment_layer is None else alignment_layer
        run: Optional[DecodingRun] = None
        at: PositionRange
        if incremental_state is None:
            batch = right_pad(prev_output_tokens, self.padding_idx)
            at = self.token_positions(batch.tokens.size(1))
            calls = self._calls(batch, encoder_out, full_context_alignment, need_weights, at)
        else:
            run = self._run(prev_output_tokens, encoder_out, incremental_state)
            batch = RightPadded(prev_output_tokens[:, -1:], None, None)
            at, calls = run.next_position, run.calls(need_weights)
        x = self.embed(batch.tokens, at)  # (T, B, E)
        x, weights, inner_states = self.run_layers(x, calls)
        if run is not None:
            run.length += 1
        x = batch.restore(x.transpose(0, 1))  # (B, T, E)
        if self.project_out_dim is not None:
            x = self.project_out_dim(x)
        attn: Optional[Tensor] = None
        if weights is not None:
            attn = weights[:, :alignment_heads].mean(dim=1).to(x)  # (B, H, T, S) -> (B, T, S)
            attn = _restore_columns(batch.restore(attn), encoder_out)
        return x, {"attn": [attn], "inner_states": inner_states}

    def embed(self, tokens: Tensor, at: PositionRange) -> Tensor:
        """``tokens`` (B, T) at positions ``at`` -> (T, B, E). Raises UserError beyond tables."""
        x = self.embed_scale * self.embed_tokens(tokens.contiguous())
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if self.embed_positions is not None:
            x = x + self.embed_positions(tokens, at)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x).transpose(0, 1).contiguous()

    def run_layers(
        self, x: Tensor, calls: Sequence[DecoderCall]
    ) -> Tuple[Tensor, Optional[Tensor], List[Optional[Tensor]]]:
        """All layers and the final norm: ``x`` (T, B, E) -> output (T, B, E), the weights (B, H, T,
        S) of the layer that returns some, or None, and the states before and after each layer.
        """
        states: List[Optional[Tensor]] = [x]
        weights: Optional[Tensor] = None
        numbers = layer_numbers(self.layers)
        for layer in self.layers:
            x, own = layer(x, calls[numbers[layer]])
            weights = weights if own is None else own
            states.append(x)
        return x if self.layer_norm is None else self.layer_norm(x), weights, states

    def _calls(
        self,
        batch: RightPadded,
        encoder_out: Optional[EncoderOut],
        full_context: bool,
        need_weights: int,
        at: PositionRange,
    ) -> List[DecoderCall]:
        """A call for each layer, for all tokens of ``batch``, at positions ``at``.

        A causal mask also masks padding, which comes after every real token.
        """
        causal = not full_context and batch.tokens.size(1) > 1
        own_padding = key_padding_of(batch.padding) if full_context else None
        source, key_padding, keys = source_of(encoder_out)
        outer = None if source is None else self.encoder_attn_positions
        own = for_layers(self.self_attn_positions, self.num_layers, at, at)
        cross = for_layers(outer, self.num_layers, at, keys)
        calls = []
        for number in range(self.num_layers):
            self_attn = AttentionCall(own[number], own_padding, causal=causal)
            attn = AttentionCall(cross[number], key_padding, need_weights=number == need_weights)
            calls.append(DecoderCall(self_attn, None if source is None else attn, source))
        return calls

    def _run(
        self, tokens: Tensor, encoder_out: Optional[EncoderOut], state: IncrementalState
    ) -> DecodingRun:
        """The run in ``state``, created at the first token. Raises UserError for left padding."""
        if tokens.size(1) == 1 and bool(tokens.eq(self.padding_idx).any()):
            raise UserError(
                "targets padded on the left cannot be decoded step by step; pad them on the right"
            )
        if _RUN not in state:
            source, key_padding, keys = source_of(encoder_out)
            beams = 1 if source is None or encoder_out is None else encoder_out["beams"][0]
            if source is not None and beams > 1:
                source = source[:, ::beams]
                key_padding = None if key_padding is None else key_padding[::beams]
            state[_RUN] = {"run": DecodingRun(self, source, key_padding, keys, tokens.size(0))}
        run: DecodingRun = state[_RUN]["run"]
        if run.length != tokens.size(1) - 1:
            raise ValueError(
                f"incremental_state has read {run.length} tokens, and {tokens.size(1)} are given: "
                "one token is decoded at a time, from the first one on"
            )
        return run

    def reorder_incremental_state_scripting(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> None:
        """Reorders the run: row r becomes row ``new_order[r]``."""
        if _RUN in incremental_state:
            incremental_state[_RUN]["run"].move_rows(new_order)


def source_of(
    encoder_out: Optional[EncoderOut],
) -> Tuple[Optional[Tensor], Optional[Tensor], PositionRange]:
    """Encoder output (S, B, E') or None, its key padding (B, S) or None, and its S positions."""
    if encoder_out is None or not encoder_out["encoder_out"]:
        return None, None, range(0)
    key_padding = encoder_out["key_padding"][0] if encoder_out["key_padding"] else None
    return encoder_out["encoder_out"][0], key_padding, encoder_out["source_positions"][0]


def _restore_columns(attn: Tensor, encoder_out: Optional[EncoderOut]) -> Tensor:
    """``attn`` (B, T, S) over right-padded sources -> over the original columns of sources."""
    if not encoder_out or not encoder_out["source_columns"]:
        return attn
    columns = encoder_out["source_columns"][0].unsqueeze(1).expand_as(attn)  # (B, T, S)
    return torch.zeros_like(attn).scatter_(2, columns, attn)
