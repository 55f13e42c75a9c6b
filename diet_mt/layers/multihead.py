"""fairseq's multi-head attention with positions inside."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..nn.attention import Added, attend, logits
from ..positions import LayerPositions
from .call import AttentionCall, need_call
from .stack import replace_dropout


def content_bias(positions: LayerPositions, q: Tensor, k: Tensor, scale: float) -> Optional[Tensor]:
    """The bias that depends on queries (B, H, T, D) or keys (B, H, S, D): (B, H, T, S), or None."""
    of_queries = positions.query_bias(q, k.size(2), scale)
    of_keys = positions.key_bias(k, scale)
    if of_queries is None or of_keys is None:
        return of_keys if of_queries is None else of_queries
    return of_queries + of_keys


class PositionalAttention(MultiheadAttention):
    """Projections around :func:`diet_mt.nn.attention.attend`.

    Parameters, initial values and state-dict keys are fairseq's. A step of a decoding run goes to
    the run's memory (``memory.py``) instead, which computes the same of the same positions.

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
        """``query`` (T, B, E) and ``source`` (S, B, E') -> (T, B, E), and weights where asked for.

        Self-attention reads no source, nor does a step of a decoding run.

        Returns:
            (T, B, E), and the weights (B, H, T, S) or None.

        Raises:
            TypeError: ``call`` is not an :class:`AttentionCall`.
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
        """What :meth:`forward` takes the softmax of, for the same arguments: (B, H, T, S).

        Without ``words`` q k^T is left out, and what positions and segments add to it is left.
        """
        q, k, added = self._meeting(query, query if source is None else source, call)
        return logits(q if words else q.new_zeros(q.shape), k, added, scale=self.scaling)

    def _attend(
        self, query: Tensor, source: Optional[Tensor], call: AttentionCall
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """All queries (T, B, E) at once -> (B, H, T, D), and weights where asked for."""
        source = query if self.self_attention else source
        assert source is not None
        positions = call.positions
        q, k, added = self._meeting(query, source, call)
        return attend(
            q,
            k,
            positions.values(self.split(self.v_proj(source)), call.padding),
            added,
            scale=self.scaling,
            output=positions.output if positions.changes_output else None,
            dropout_p=self.dropout_module.p if self.dropout_module.active else 0.0,
            need_weights=call.need_weights,
        )

    def _meeting(
        self, query: Tensor, source: Tensor, call: AttentionCall
    ) -> Tuple[Tensor, Tensor, Added]:
        """Queries (B, H, T, D), keys (B, H, S, D), and what is added to their product."""
        positions = call.positions
        q = positions.queries(self.split(self.q_proj(query)))  # (B, H, T, D)
        k = positions.keys(self.split(self.k_proj(source)), call.padding)  # (B, H, S, D)
        factors = [pair for pair in (positions.factors(), call.segments) if pair is not None]
        added = Added(
            bias=positions.bias,
            content_bias=content_bias(positions, q, k, self.scaling),
            factors=factors,
            padding=None if positions.mixes_keys else call.padding,
            causal=call.causal,
        )
        return q, k, added

    def split(self, x: Tensor) -> Tensor:
        """(T, B, E) -> (B, H, T, D), a view."""
        return x.unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)
