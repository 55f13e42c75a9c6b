"""fairseq's multi-head attention with positions inside, and the arguments of a call.

Positions, masks and the layer's part of a decoding run are fields of one frozen object rather than
tensors in fairseq's signatures: none can be mistaken for another, and a layer called without the
object raises TypeError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple

from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..nn.attention import LogitTerms, attend, logits
from ..positions import ENCODER, AttentionPositions, PositionRange, PositionTerms
from ..positions.terms import NO_TERMS
from .stack import replace_dropout

if TYPE_CHECKING:
    from .run import LayerCache


@dataclass(frozen=True)
class AttentionCall:
    """Arguments of one call of an attention module.

    Attributes:
        positions: terms of the encoding.
        key_padding: (B, S), True at padding (see ``key_padding_of``), or None.
        causal: mask keys after their query.
        segments: factors (B, H|1, T, N) and (B, 1, S, N) of a bias, or None.
        cache: the module's part of a decoding run, or None.
        need_weights: also return the attention weights.
    """

    positions: PositionTerms = NO_TERMS
    key_padding: Optional[Tensor] = None
    causal: bool = False
    segments: Optional[Tuple[Tensor, Tensor]] = None
    cache: Optional[LayerCache] = None
    need_weights: bool = False


@dataclass(frozen=True)
class DecoderCall:
    """Arguments of one call of a decoder layer.

    ``source``: encoder output (S, B, E'), not read if ``encoder_attn`` has a cache.
    ``encoder_attn``: None without cross-attention.
    """

    self_attn: AttentionCall
    encoder_attn: Optional[AttentionCall] = None
    source: Optional[Tensor] = None


def for_layers(
    positions: Optional[AttentionPositions],
    layers: int,
    queries: PositionRange,
    keys: PositionRange,
) -> Sequence[PositionTerms]:
    """Terms of ``positions`` for each of ``layers`` layers; no terms if it is None."""
    return [NO_TERMS] * layers if positions is None else positions.for_layers(queries, keys)


def need_call(call: Any, kind: type, layer: object) -> None:
    """Raises TypeError unless ``call`` is a ``kind``, which holds the positions of ``layer``."""
    if not isinstance(call, kind):
        raise TypeError(
            f"{type(layer).__name__} takes {kind.__name__} from its stack, not "
            f"{type(call).__name__}: called in fairseq's signature, it would compute without "
            "positions; call the encoder or decoder"
        )


class PositionalAttention(MultiheadAttention):
    """fairseq's ``MultiheadAttention`` over :func:`~diet_mt.nn.attention.attend`.

    Parameters, initial values and state-dict keys are fairseq's. A decoding step attends over the
    cache of its run, with the same result.

    Args:
        scale: factor of q k^T, such as ``D ** -0.5``. Others as in ``MultiheadAttention``.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, scale: float, **kwargs: Any) -> None:
        super().__init__(embed_dim, num_heads, **kwargs)
        self.scaling = scale
        replace_dropout(self, "MultiheadAttention")

    @property
    def dropout_p(self) -> float:
        """Probability of dropping a weight, 0 if dropout is inactive."""
        return float(self.dropout_module.p) if self.dropout_module.active else 0.0

    def forward(
        self, query: Tensor, source: Optional[Tensor], call: AttentionCall
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """``query`` (T, B, E) and ``source`` (S, B, E') -> (T, B, E), and with ``need_weights`` the
        weights (B, H, T, S).

        ``source`` is not read in self-attention, nor with a cache.
        """
        need_call(call, AttentionCall, self)
        out: Tensor
        weights: Optional[Tensor]
        if call.cache is not None:
            out, weights = call.cache.attend(query[0], call)
        else:
            out, weights = self._attend(query, source, call)
        x = self.out_proj(out.permute(2, 0, 1, 3).flatten(2))  # (T, B, E)
        return x, weights if call.need_weights else None

    def logits(
        self, query: Tensor, source: Optional[Tensor], call: AttentionCall, *, words: bool = True
    ) -> Tensor:
        """Logits of :meth:`forward` for the same arguments, (B, H, T, S); without ``words``, only
        the terms of positions, segments and masks, without q k^T.
        """
        q, k, terms = self._logit_terms(query, source, call)
        return logits(q if words else q.new_zeros(q.shape), k, terms, scale=self.scaling)

    def _attend(
        self, query: Tensor, source: Optional[Tensor], call: AttentionCall
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Attention of queries (T, B, E): (B, H, T, D), and the weights or None."""
        source, positions = query if self.self_attention else source, call.positions
        q, k, terms = self._logit_terms(query, source, call)
        return attend(
            q,
            k,
            positions.values(self.split(self.v_proj(source)), call.key_padding),
            terms,
            scale=self.scaling,
            output=positions.output if positions.changes_output else None,
            dropout_p=self.dropout_p,
            need_weights=call.need_weights,
        )

    def _logit_terms(
        self, query: Tensor, source: Optional[Tensor], call: AttentionCall
    ) -> Tuple[Tensor, Tensor, LogitTerms]:
        """Queries (B, H, T, D_k), keys (B, H, S, D_k), and the terms added to their product."""
        source, positions = query if self.self_attention else source, call.positions
        q = positions.queries(self.split(self.q_proj(query)))  # (B, H, T, D_k)
        k = positions.keys(self.split(self.k_proj(source)), call.key_padding)  # (B, H, S, D_k)
        factors = [pair for pair in (positions.factors(), call.segments) if pair is not None]
        terms = LogitTerms(
            bias=positions.bias,
            content_bias=positions.content_bias(q, k, self.scaling),
            factors=factors,
            key_padding=None if positions.mixes_keys else call.key_padding,
            causal=call.causal,
        )
        return q, k, terms

    def split(self, x: Tensor) -> Tensor:
        """(T, B, E) -> (B, H, T, D), a view."""
        return x.unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)


def build_attention(
    layer: Any, embed_dim: int, cfg: Any, kind: str, **more: Any
) -> PositionalAttention:
    """The attention module of one ``kind`` for a fairseq ``layer``."""
    stack = cfg.encoder if kind == ENCODER else cfg.decoder
    return PositionalAttention(
        embed_dim,
        stack.attention_heads,
        scale=cfg.attention_scale_of(stack, kind),
        dropout=cfg.attention_dropout,
        q_noise=layer.quant_noise,
        qn_block_size=layer.quant_noise_block_size,
        **more,
    )
