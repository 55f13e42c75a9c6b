"""fairseq's Transformer decoder with positions inside self- and cross-attention."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor, nn

from ..errors import UserError
from ..positions import CROSS, DECODER, AttentionPositions, AttentionShape, Terms
from .beams import regroup
from .multihead import IncrementalState, OffsetAttention
from .padding import RightPadded, padding_offsets, right_pad
from .stack import EncoderOut, layer_numbers, replace_dropout, wrap_layer
from .terms import DecodingTerms, LayerTerms, unpack

# Where a decoding run keeps its terms, in fairseq's incremental state.
_TERMS = "diet_mt.terms"


class DietDecoderLayer(TransformerDecoderLayerBase):
    """fairseq's decoder layer over :class:`OffsetAttention`."""

    def __init__(self, cfg: Any, no_encoder_attn: bool = False) -> None:
        super().__init__(cfg, no_encoder_attn)
        replace_dropout(self, "TransformerDecoderLayer")

    def _attention(self, embed_dim: int, cfg: Any, **kind: Any) -> OffsetAttention:
        return OffsetAttention(
            embed_dim,
            cfg.decoder.attention_heads,
            scale=cfg.attention_scale_of(cfg.decoder),
            dropout=cfg.attention_dropout,
            q_noise=self.quant_noise,
            qn_block_size=self.quant_noise_block_size,
            **kind,
        )

    def build_self_attention(
        self, embed_dim: int, cfg: Any, add_bias_kv: bool = False, add_zero_attn: bool = False
    ) -> OffsetAttention:
        return self._attention(embed_dim, cfg, self_attention=True)

    def build_encoder_attention(self, embed_dim: int, cfg: Any) -> OffsetAttention:
        width = cfg.encoder.embed_dim
        return self._attention(
            embed_dim, cfg, kdim=width, vdim=width, encoder_decoder_attention=True
        )

    def forward(
        self,
        x: Tensor,
        encoder_out: Optional[Tensor] = None,
        encoder_padding_mask: Any = None,
        incremental_state: Optional[IncrementalState] = None,
        *args: Any,
        **given: Any,
    ) -> Any:
        """As fairseq's; terms from :class:`LayerTerms` take the place of the padding masks."""
        terms = {name: given.pop(name) for name in list(given) if "." in name}
        if terms:
            encoder_padding_mask = unpack("encoder_attn", terms)
            given["self_attn_padding_mask"] = unpack("self_attn", terms)
        return super().forward(
            x, encoder_out, encoder_padding_mask, incremental_state, *args, **given
        )


class DietDecoder(TransformerDecoderBase):
    """Decoder whose layers get the positional terms of their attention with their padding masks."""

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
        heads, width, layers = (
            cfg.decoder.attention_heads,
            cfg.decoder.embed_dim,
            cfg.decoder.layers,
        )
        targets, sources = cfg.max_target_positions, cfg.max_source_positions
        self.embed_positions = cfg.positions.input_term(targets, width)
        self.self_attn_positions = cfg.positions.attention_positions(
            AttentionShape(layers, heads, width // heads, targets, targets, DECODER)
        )
        self.encoder_attn_positions = None
        if not no_encoder_attn:
            self.encoder_attn_positions = cfg.positions.attention_positions(
                AttentionShape(layers, heads, width // heads, targets, sources, CROSS)
            )

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        return wrap_layer(DietDecoderLayer(cfg, no_encoder_attn), cfg)

    def extract_features_scriptable(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[EncoderOut],
        incremental_state: Optional[IncrementalState] = None,
        full_context_alignment: bool = False,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
    ) -> Tuple[Tensor, Dict[str, List[Optional[Tensor]]]]:
        """fairseq's calling form: ``prev_output_tokens`` (B, T) -> features (B, T, E) and extras.

        ``extra["attn"]`` holds the cross-attention of ``alignment_layer`` (default: the last), (B,
        T, S), with rows and columns as the tokens came. Written out rather than inherited: with
        ``incremental_state`` fairseq drops all but the last token before its layers see any, and
        cross-attention cannot know which position it serves.

        Raises UserError for targets padded on the left with ``incremental_state``.
        """
        batch, query_start = self._enter(prev_output_tokens, incremental_state)
        x = self._embed(batch.tokens, query_start)  # (T, B, E)
        self_terms = self._self_terms(
            batch, x, query_start, incremental_state, full_context_alignment
        )
        source, cross_terms = self._source(encoder_out, x, query_start, incremental_state)
        attn: Optional[Tensor] = None
        inner_states: List[Optional[Tensor]] = [x]
        if alignment_layer is None:
            alignment_layer = self.num_layers - 1
        numbers = layer_numbers(self.layers)
        for layer in self.layers:
            number = numbers[layer]
            x, weights, _ = layer(
                x,
                source,
                None,
                incremental_state,
                need_attn=number == alignment_layer,
                need_head_weights=number == alignment_layer,
                **self_terms.of(number),
                **cross_terms.of(number),
            )
            inner_states.append(x)
            if weights is not None and number == alignment_layer:
                attn = weights[:alignment_heads].mean(dim=0).to(x)  # (H, B, T, S) -> (B, T, S)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        x = batch.restore(x.transpose(0, 1))  # (B, T, E)
        if self.project_out_dim is not None:
            x = self.project_out_dim(x)
        if attn is not None:
            attn = _restore_columns(batch.restore(attn), encoder_out)
        return x, {"attn": [attn], "inner_states": inner_states}

    def _enter(self, tokens: Tensor, state: Optional[IncrementalState]) -> Tuple[RightPadded, int]:
        """The tokens to run, right-padded, and the position of the first of them."""
        if state is None:
            return right_pad(tokens, self.padding_idx), 0
        if tokens.size(1) == 1 and bool(tokens.eq(self.padding_idx).any()):
            raise UserError(
                "targets padded on the left cannot be decoded step by step; pad them on the right"
            )
        return RightPadded(tokens[:, -1:], None, None), tokens.size(1) - 1

    def _embed(self, tokens: Tensor, query_start: int) -> Tensor:
        """(B, T) tokens from position ``query_start`` on -> (T, B, E)."""
        x = self.embed_scale * self.embed_tokens(tokens.contiguous())
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if self.embed_positions is not None:
            x = x + self.embed_positions.rows(query_start, query_start + tokens.size(1))
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x).transpose(0, 1)

    def _self_terms(
        self,
        batch: RightPadded,
        x: Tensor,
        query_start: int,
        state: Optional[IncrementalState],
        full_context: bool,
    ) -> LayerTerms:
        """Terms of self-attention.

        Padding needs no mask under a causal one: it stands behind all that a real token may look
        at. A decoding step needs neither: its keys are those already written.
        """
        length = x.size(0)
        mask = padding_offsets(batch.padding, x.dtype) if full_context else None
        terms = self._terms("self_attn", query_start, length, query_start + length, state)
        return LayerTerms(
            "self_attn",
            terms,
            mask,
            like=x,
            causal=state is None and not full_context,
            query_start=query_start,
            query_len=length,
        )

    def _source(
        self,
        encoder_out: Optional[EncoderOut],
        x: Tensor,
        query_start: int,
        state: Optional[IncrementalState],
    ) -> Tuple[Optional[Tensor], LayerTerms]:
        """Encoder output (S, B', E) and the terms of cross-attention, one row per sentence while
        decoding.
        """
        if encoder_out is None or not encoder_out["encoder_out"]:
            return None, LayerTerms("encoder_attn", None, None, like=x)
        source: Tensor = encoder_out["encoder_out"][0]
        beams = encoder_out["beams"][0] if x.size(0) == 1 and "beams" in encoder_out else 1
        if "source_offsets" in encoder_out:
            mask = encoder_out["source_offsets"][0] if encoder_out["source_offsets"] else None
        else:
            mask = padding_offsets(encoder_out["encoder_padding_mask"][0], x.dtype)
        if beams > 1:
            source = source[:, ::beams]
            mask = None if mask is None else mask[::beams]
        length = x.size(0)
        terms = self._terms("encoder_attn", query_start, length, source.size(0), state)
        return source, LayerTerms(
            "encoder_attn", terms, mask, like=x, query_start=query_start, query_len=length
        )

    def _terms(
        self,
        name: str,
        query_start: int,
        query_len: int,
        key_len: int,
        state: Optional[IncrementalState],
    ) -> Optional[Terms]:
        """What the encoding says about the attention ``name``, from the run's cache in decoding."""
        positions: Optional[AttentionPositions] = getattr(self, f"{name}_positions")
        if positions is None:
            return None
        if state is None:
            return positions.terms(query_start, query_len, key_len)
        run: Dict[str, Any] = state.setdefault(_TERMS, {})
        cache = run.setdefault(name, DecodingTerms())
        found: Terms = cache.at(positions, query_start, key_len, grows=name == "self_attn")
        return found

    def reorder_incremental_state_scripting(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> None:
        """Moves the caches of all layers to ``new_order`` (rows,), those of cross-attention by
        sentence.
        """
        sentences = self._sentence_order(incremental_state, new_order)
        for layer in self.layers.children():
            layer.self_attn.reorder_cache(incremental_state, new_order)
            if layer.encoder_attn is not None:
                layer.encoder_attn.reorder_cache(incremental_state, sentences)

    def _sentence_order(self, state: IncrementalState, new_order: Tensor) -> Optional[Tensor]:
        """Order of the cached sources, which is the same in all layers; None where all stay."""
        layer = next(self.layers.children())
        if layer.encoder_attn is None:
            return None
        rows, sources = layer.self_attn.cached_rows(state), layer.encoder_attn.cached_rows(state)
        return regroup(new_order, rows, rows // sources)[1] if sources else None


def _restore_columns(attn: Tensor, encoder_out: Optional[EncoderOut]) -> Tensor:
    """Attention (B, T, S) over right-padded sources -> over their columns as they came."""
    if not encoder_out or not encoder_out.get("source_columns"):
        return attn
    columns = encoder_out["source_columns"][0].unsqueeze(1).expand_as(attn)  # (B, T, S)
    return torch.zeros_like(attn).scatter_(2, columns, attn)
