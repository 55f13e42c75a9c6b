"""Caches of keys and values of a decoding run, and attention over them.

:class:`KernelCache` uses C++ loops on a CPU, where a step of many small operators costs more than
its arithmetic; ``PrefixCache`` uses torch's operators, on any device and in any precision;
``SlotCache`` uses torch's operators at fixed addresses.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from .. import kernels
from ..nn.attention import LogitTerms, attend
from ..positions import PositionTerms

# Output (rows, H, 1, D) and, if requested, weights (rows, H, 1, S). D_k, the width of queries and
# keys, depends on the encoding: D, the width of values, or another one.
Output = Tuple[Tensor, Optional[Tensor]]


class Cache:
    """A cache for ``sentences`` (B') with ``group`` hypotheses each, in B' * group rows.

    First, :meth:`add_source` stores keys (B', H, S, D_k) and values (B', H, S, D) of each layer,
    and :meth:`mask_source` the key padding (B', S) or None. In each step, :meth:`open` precedes the
    token at a position. In each layer, with its attention ``module``, :meth:`attend` is
    self-attention of ``q`` (rows, H, D) over all tokens so far, the last with ``k`` (rows, H, D_k)
    and ``v`` (rows, H, D), and :meth:`attend_source` is cross-attention. :meth:`move` ends a step.
    """

    def __init__(self, sentences: int, group: int) -> None:
        self.sentences, self.group = sentences, group
        self.target: List[Tensor] = []  # keys and values of each layer
        self.sources: List[Tensor] = []  # keys and values of the source
        self.key_padding: Optional[Tensor] = None  # of the source

    def move(self, order: Tensor, sentences: Optional[Tensor], group: int) -> None:
        """Reorders: row r becomes row ``order[r]``, sentence b becomes sentence ``sentences[b]``.

        ``sentences``: None if all stay. ``group``: hypotheses per sentence from now on.
        """
        self._move_target(order, sentences, group)
        if sentences is not None:
            self.sources = [each.index_select(0, sentences) for each in self.sources]
            padding = self.key_padding
            self.key_padding = None if padding is None else padding[sentences]
        self.sentences, self.group = order.numel() // group, group

    def _move_target(self, order: Tensor, sentences: Optional[Tensor], group: int) -> None:
        raise NotImplementedError


def attend_by_sentence(
    module: Any,
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    positions: PositionTerms,
    bias: Optional[Tensor],
    need_weights: bool = False,
    group: Optional[int] = None,
) -> Output:
    """Attention of one decoding step, in which the rows of a sentence share keys and values.

    ``q`` (rows, H, D), keys (B', H, S, D_k) and values (B', H, S, D); ``bias`` (B'|1, H|1, group|1,
    S) replaces the bias of ``positions``. ``group``: rows per sentence, for exported programs,
    which cannot compute it.
    """
    group = group or q.size(0) // keys.size(0)
    # The hypotheses of a sentence are queries at one position.
    q = positions.queries(q.unflatten(0, (-1, group)).transpose(1, 2))  # (B', H, group, D_k)
    more = positions.content_bias(q, keys, module.scaling)
    if more is not None:
        bias = more if bias is None else more.to(bias.dtype) + bias
    out, weights = attend(
        q,
        keys,
        values,
        LogitTerms(content_bias=bias),
        scale=module.scaling,
        output=positions.output if positions.changes_output else None,
        dropout_p=module.dropout_p,
        need_weights=need_weights,
    )
    return _by_row(out), None if weights is None else _by_row(weights)


def _by_row(x: Tensor) -> Tensor:
    """(B', H, group, N) -> (rows, H, 1, N)."""
    return x.transpose(1, 2).flatten(0, 1).unsqueeze(2)


def finite(x: Tensor) -> Tensor:
    """``x`` with 0 for NaN and infinite numbers, as stored where hypotheses share keys.

    The weight 0 of a masked key times NaN would be NaN in all of them.
    """
    return x.nan_to_num(0.0, 0.0, 0.0)


def with_own_nan(out: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """``out`` (rows, H, 1, D) with NaN where the new ``v`` (rows, H, D) of a row, or its new ``k``
    (rows, H, D_k) in the first D columns, is NaN or infinite, which :func:`finite` hides.
    """
    return torch.addcmul(out, k[..., : v.size(-1)].unsqueeze(2), v.unsqueeze(2), value=0.0)


class KernelCache(Cache):
    """Cache for ``diet_mt/kernels``: each hypothesis attends over its own tokens, in their order.

    Each token that a hypothesis has read has a slot, with its keys and values in every layer, and a
    hypothesis is a row of slots. New tokens take unused slots. ``target`` has keys (capacity, H *
    D_k) and values (capacity, H * D), ``sources`` (B', S, H * D_k) and (B', S, H * D).
    """

    def __init__(self, sentences: int, group: int) -> None:
        super().__init__(sentences, group)
        self.length = 0
        self.capacity = 0
        self._slots = torch.empty(sentences * group, 0, dtype=torch.int32)  # (rows, room)

    def add_source(self, k: Tensor, v: Tensor) -> None:
        self.sources += [each.transpose(1, 2).flatten(2).contiguous() for each in (k, v)]

    def mask_source(self, key_padding: Optional[Tensor]) -> None:
        self.key_padding = None if key_padding is None else key_padding.contiguous()

    def open(self, position: int) -> None:
        rows, room = self._slots.shape
        if position == room:
            more = torch.empty(rows, max(room, 16), dtype=torch.int32)
            self._slots = torch.cat([self._slots, more], dim=1)
        new = kernels.free_slots(self._slots, position, self.capacity)
        if new is None:
            added = max(self.capacity, rows)
            self.capacity += added
            self.target = [
                torch.cat([each, each.new_empty(added, each.size(1))]) for each in self.target
            ]
            new = kernels.free_slots(self._slots, position, self.capacity)
            assert new is not None
        self._slots[:, position] = new
        self.length = position + 1

    def attend(
        self, layer: int, module: Any, q: Tensor, k: Tensor, v: Tensor, positions: PositionTerms
    ) -> Output:
        while len(self.target) <= 2 * layer:
            self.target += [each.new_empty(self.capacity, each[0].numel()) for each in (k, v)]
        keys, values = self.target[2 * layer : 2 * layer + 2]
        of_keys: Optional[Tensor] = None
        if positions.reads_keys:
            slots = self._slots[:, : self.length]
            # Attention will write these keys as well, but the bias needs them before.
            keys.index_copy_(0, slots[:, -1].long(), k.flatten(1))
            in_order = keys.index_select(0, slots.flatten()).view(*slots.shape, *k.shape[1:])
            of_keys = positions.key_bias(in_order.transpose(1, 2), module.scaling)
        span: Dict[str, Any] = {"count": self.length, "slots": self._slots, "new": (k, v)}
        return self._attend(module, q, keys, values, positions, of_keys, **span)

    def attend_source(
        self, layer: int, module: Any, q: Tensor, positions: PositionTerms, need_weights: bool
    ) -> Output:
        keys, values = self.sources[2 * layer : 2 * layer + 2]
        of_keys: Optional[Tensor] = None
        if positions.reads_keys:
            by_head = keys.unflatten(2, (q.size(1), -1)).transpose(1, 2)  # (B', H, S, D_k)
            of_keys = positions.key_bias(by_head, module.scaling)  # (B', H, 1, S)
            if of_keys is not None:
                of_keys = of_keys.repeat_interleave(self.group, dim=0)
        span: Dict[str, Any] = {"count": keys.size(1), "group": self.group}
        span |= {"key_padding": self.key_padding, "need_weights": need_weights}
        return self._attend(module, q, keys, values, positions, of_keys, **span)

    @staticmethod
    def _attend(
        module: Any,
        q: Tensor,
        keys: Tensor,
        values: Tensor,
        positions: PositionTerms,
        of_keys: Optional[Tensor],
        *,
        count: int,
        key_padding: Optional[Tensor] = None,
        need_weights: bool = False,
        **slots: Any,
    ) -> Output:
        """Attention of ``q`` (rows, H, D); ``of_keys``: the key bias (rows, H, 1, S), or None."""
        if torch.is_grad_enabled() and q.requires_grad:
            raise RuntimeError(
                "a decoding run that began under torch.no_grad() gives no gradients; begin it with "
                "gradients enabled"
            )
        # For the encoding, all rows are queries of one sentence at one position.
        q = positions.queries(q.transpose(0, 1)[None])  # (1, H, rows, D_k)
        bias = positions.query_bias(q, count, module.scaling)
        if of_keys is not None:
            of_keys = of_keys.permute(2, 1, 0, 3)  # (1, H, rows, S)
            bias = of_keys if bias is None else bias + of_keys
        out, weights = kernels.attend(
            q[0].transpose(0, 1),
            keys,
            values,
            LogitTerms(positions.bias, bias, key_padding=key_padding),
            count=count,
            scale=module.scaling,
            need_weights=need_weights or positions.changes_output,
            **slots,
        )
        out = out.unflatten(1, (q.size(1), 1, -1))  # (rows, H, 1, D)
        if weights is None:
            return out, None
        added = positions.output(weights[None])  # (1, H, rows, D)
        if added is not None:
            out = out + added.permute(2, 1, 0, 3)
        return out, weights.transpose(0, 1).unsqueeze(2) if need_weights else None

    def _move_target(self, order: Tensor, sentences: Optional[Tensor], group: int) -> None:
        self._slots = self._slots.index_select(0, order)
