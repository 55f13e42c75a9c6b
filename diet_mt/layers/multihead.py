"""fairseq's multi-head attention with offsets on the logits and one source cache for all beams."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..attention import attend
from ..positions import Term
from .padding import padding_offsets
from .stack import replace_dropout

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


class OffsetAttention(MultiheadAttention):
    """Projections, decoding cache and one call of :func:`diet_mt.attention.attend`.

    Parameters, initial values and state-dict keys are fairseq's. One path serves training,
    validation and every decoding step, so no kernel can leave the positional term out in one of
    them.

    Args:
        scale: factor of q k^T, ``D ** -0.5`` or ``E ** -0.5``. The rest as in fairseq's
            ``MultiheadAttention``.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, scale: float, **kwargs: Any) -> None:
        super().__init__(embed_dim, num_heads, **kwargs)
        self.scaling = scale
        replace_dropout(self, "MultiheadAttention")

    def forward(
        self,
        query: Tensor,
        key: Optional[Tensor],
        value: Optional[Tensor],
        key_padding_mask: Any = None,
        incremental_state: Optional[IncrementalState] = None,
        need_weights: bool = True,
        static_kv: bool = False,
        attn_mask: Optional[Tensor] = None,
        before_softmax: bool = False,
        need_head_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """fairseq's calling form; tensors are time first.

        Args:
            query: (T, B, E).
            key: (S, B', E') with B' = B, or B = B' * G where each run of G queries (the beams of
                one sentence) reads the same keys. Not read where ``static_kv`` finds keys in the
                cache. ``value`` is never read: fairseq's layers pass the same tensor twice.
            key_padding_mask: the :class:`Term` of the layer; or additive offsets (B'|1, H|1, T|1,
                S); or a bool mask (B', S), True at padding.
            attn_mask: further additive offsets (T, S), 0 or -inf.

        Returns:
            (T, B, E), and where asked for the weights: (B, T, S), or (H, B, T, S) with
            ``need_head_weights``.
        """
        if before_softmax:
            raise NotImplementedError(
                "before_softmax: the logits are not kept; ask for need_head_weights"
            )
        term = _as_term(key_padding_mask, attn_mask, query)
        q = term.queries(self._split(self.q_proj(query)))  # (B, H, T, D)
        k, v = self._keys_and_values(
            query if self.self_attention else key, incremental_state, static_kv, term
        )
        need_weights = need_weights or need_head_weights
        group = q.size(0) // k.size(0)
        if group > 1:
            q = self._join_beams(q, group)  # (B', H, G, D)
        content = term.content(q, k.size(2), self.scaling)
        q, k, scale = term.widened(q, k, self.scaling)
        out, weights = attend(
            q,
            k,
            v,
            scale=scale,
            offsets=term.mask(),
            content=content,
            causal=term.causal,
            mix=term.mix,
            mixes=term.mixes,
            dropout_p=self.dropout_module.p if self.dropout_module.active else 0.0,
            need_weights=need_weights,
        )
        if group > 1:
            out = self._part_beams(out)  # (B, H, 1, D)
            weights = None if weights is None else self._part_beams(weights)  # (B, H, 1, S)
        x = self.out_proj(out.permute(2, 0, 1, 3).flatten(2))  # (T, B, E)
        if weights is None:
            return x, None
        return x, weights.transpose(0, 1) if need_head_weights else weights.mean(dim=1)

    def _split(self, x: Tensor) -> Tensor:
        """(T, B, E) -> (B, H, T, D), a view."""
        return x.unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)

    @staticmethod
    def _join_beams(x: Tensor, group: int) -> Tensor:
        """(B' * G, H, 1, D) -> (B', H, G, D): the beams become queries of their sentence."""
        return x.squeeze(2).unflatten(0, (-1, group)).transpose(1, 2)

    @staticmethod
    def _part_beams(x: Tensor) -> Tensor:
        """(B', H, G, D) -> (B' * G, H, 1, D), undoing :meth:`_join_beams`."""
        return x.transpose(1, 2).flatten(0, 1).unsqueeze(2)

    def _keys_and_values(
        self,
        source: Optional[Tensor],
        state: Optional[IncrementalState],
        static: bool,
        term: Term,
    ) -> Tuple[Tensor, Tensor]:
        """Keys and values, (B', H, S, D), of the cache and then of ``source`` (S', B', E')."""
        saved = self._get_input_buffer(state) if state is not None else {}
        old_k, old_v = saved.get("prev_key"), saved.get("prev_value")
        if static and old_k is not None and old_v is not None:
            return old_k, old_v
        assert source is not None
        k = term.keys(self._split(self.k_proj(source)))
        v = term.values(self._split(self.v_proj(source)))
        if state is not None:
            if old_k is not None and old_v is not None:
                k, v = torch.cat([old_k, k], dim=2), torch.cat([old_v, v], dim=2)
            else:
                k, v = k.contiguous(), v.contiguous()
            self._set_input_buffer(state, {"prev_key": k, "prev_value": v})
        return k, v

    def cached_rows(self, state: IncrementalState) -> int:
        """Number of rows in the cache, 0 where there is none."""
        keys = self._get_input_buffer(state).get("prev_key")
        return 0 if keys is None else keys.size(0)

    def reorder_incremental_state(
        self, incremental_state: Optional[IncrementalState], new_order: Tensor
    ) -> Optional[IncrementalState]:
        """Row r of the cache becomes what row ``new_order[r]`` was."""
        self.reorder_cache(incremental_state, new_order)
        return incremental_state

    def reorder_cache(self, state: Optional[IncrementalState], order: Optional[Tensor]) -> None:
        """As :meth:`reorder_incremental_state`; None: nothing moves."""
        saved = self._get_input_buffer(state) if state is not None else {}
        if saved and order is not None:
            moved = {k: None if x is None else x.index_select(0, order) for k, x in saved.items()}
            self._set_input_buffer(state, moved)


def _as_term(given: Any, mask: Optional[Tensor], query: Tensor) -> Term:
    """The term of a layer, or one that only adds what fairseq's masks say."""
    if isinstance(given, Term):
        assert mask is None, "masks are part of the term"
        return given
    if given is not None and given.dim() == 2:
        given = padding_offsets(given.bool(), query.dtype)
    if mask is not None:
        given = mask[None, None] if given is None else given + mask[None, None]
    return Term(offsets=given, query_len=query.size(0))
