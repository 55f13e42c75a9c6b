"""fairseq's multi-head attention with positions inside, and one source cache for all beams."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..attention import attend
from .call import AttentionCall, need_call
from .stack import replace_dropout


class PositionalAttention(MultiheadAttention):
    """Projections and one call of :func:`diet_mt.attention.attend`.

    Parameters, initial values and state-dict keys are fairseq's. One path serves training,
    validation and every decoding step, so no kernel can leave the positions out in one of them.

    Args:
        scale: factor of q k^T, ``D ** -0.5`` or ``E ** -0.5``. The rest as in fairseq's
            ``MultiheadAttention``.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, scale: float, **kwargs: Any) -> None:
        super().__init__(embed_dim, num_heads, **kwargs)
        self.scaling = scale
        replace_dropout(self, "MultiheadAttention")

    def forward(
        self, query: Tensor, source: Optional[Tensor], call: AttentionCall
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """``query`` (T, B, E) and ``source`` (S, B', E') -> (T, B, E), and weights where asked for.

        Self-attention reads no source. B' = B, or in a decoding step, where T is 1, B = B' * G and
        each run of G queries (the beams of one sentence) reads the same keys.

        Returns:
            (T, B, E), and the weights (B, H, T, S) or None.

        Raises:
            TypeError: ``call`` is not an :class:`AttentionCall`.
        """
        need_call(call, AttentionCall, self)
        positions = call.positions
        if call.cache is not None:
            q, k, v = call.cache.project(query, positions)
        else:
            source = query if self.self_attention else source
            assert source is not None
            q = self.split(self.q_proj(query))  # (B, H, T, D)
            k = positions.keys(self.split(self.k_proj(source)), call.padding)  # (B, H, S, D)
            v = positions.values(self.split(self.v_proj(source)), call.padding)
        q = positions.queries(q)
        group = q.size(0) // k.size(0)
        if group > 1:
            q = _join_beams(q, group)  # (B', H, G, D)
        factors = [pair for pair in (positions.factors(), call.segments) if pair is not None]
        out, weights = attend(
            q,
            k,
            v,
            scale=self.scaling,
            bias=positions.bias,
            query_bias=positions.query_bias(q, k.size(2), self.scaling),
            factors=factors,
            padding=None if positions.mixes_keys else call.padding,
            causal=call.causal,
            output=positions.output if positions.changes_output else None,
            dropout_p=self.dropout_module.p if self.dropout_module.active else 0.0,
            need_weights=call.need_weights,
        )
        if group > 1:
            out = _part_beams(out)  # (B, H, 1, D)
            weights = None if weights is None else _part_beams(weights)  # (B, H, 1, S)
        return self.out_proj(out.permute(2, 0, 1, 3).flatten(2)), weights

    def split(self, x: Tensor) -> Tensor:
        """(T, B, E) -> (B, H, T, D), a view."""
        return x.unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)


def _join_beams(x: Tensor, group: int) -> Tensor:
    """(B' * G, H, 1, D) -> (B', H, G, D): the beams become queries of their sentence."""
    return x.squeeze(2).unflatten(0, (-1, group)).transpose(1, 2)


def _part_beams(x: Tensor) -> Tensor:
    """(B', H, G, D) -> (B' * G, H, 1, D), undoing :func:`_join_beams`."""
    return x.transpose(1, 2).flatten(0, 1).unsqueeze(2)
