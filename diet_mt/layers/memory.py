"""The keys and values of a decoding run, and attention over them.

There are two: :class:`TensorMemory` computes with torch's operators, on every device and in every
precision; :class:`KernelMemory` with loops of our own on a CPU, where a step of many small
operators costs more than what they compute.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import List, Optional, Protocol, Tuple

import torch
from torch import Tensor

from .. import kernels
from ..nn.attention import closed_keys, softmax_
from ..positions import LayerPositions
from .nodes import Nodes
from .stack import Dropout

# What attention finds, (rows, H, 1, D), and where asked for its weights (rows, H, 1, S). The width
# of queries and keys, R, is what the encoding makes it: D, as that of values, or another one.
Found = Tuple[Tensor, Optional[Tensor]]

# Factors of q k^T, in self- and in cross-attention.
Scale = Tuple[float, float]


# Of the weights, in self- and in cross-attention, where there is one.
Dropouts = Tuple[Optional[Dropout], Optional[Dropout]]


def memory_for(
    like: Tensor, sentences: int, group: int, layers: int, scale: Scale, dropout: Dropouts
) -> Memory:
    """The faster one for tensors such as ``like``; ``scale``: see :class:`Memory`."""
    of_self, of_cross = (each if each is not None and each.active else None for each in dropout)
    if kernels.serve(like) and of_self is None and of_cross is None:
        return KernelMemory(sentences, group, scale)
    return TensorMemory(sentences, group, scale, layers, like.device, (of_self, of_cross))


class Attends(Protocol):
    """What the layers of a run read."""

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, positions: LayerPositions
    ) -> Found:
        """Self-attention of ``q`` (rows, H, D) over all that was read, ``k`` (rows, H, R) and ``v``
        (rows, H, D) being new; without weights.
        """

    def attend_source(
        self, layer: int, q: Tensor, positions: LayerPositions, need_weights: bool
    ) -> Found:
        """Cross-attention of ``q`` (rows, H, D)."""


class Memory(ABC):
    """Of ``sentences``, each with ``group`` hypotheses. ``scale``: the factors of q k^T, in
    self- and in cross-attention.

    A step is one :meth:`open` and, in each layer, one call of :meth:`attend` and
    :meth:`attend_source`; then :meth:`move`.
    """

    def __init__(self, sentences: int, group: int, scale: Scale) -> None:
        self.sentences, self.group, self.scale = sentences, group, scale
        self.sources: List[Tensor] = []  # keys and values of each layer, by sentence
        self._closed: Optional[Tensor] = None  # the mask, by sentence

    @abstractmethod
    def add_source(self, k: Tensor, v: Tensor) -> None:
        """Keys (B', H, S, R) and values (B', H, S, D) of the source in the next layer."""

    @abstractmethod
    def close(self, mask: Optional[Tensor]) -> None:
        """``mask`` (B', S): keys of the source that nobody may look at."""

    @abstractmethod
    def open(self, position: int) -> None:
        """Every hypothesis is about to read its token at ``position``."""

    @abstractmethod
    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, positions: LayerPositions
    ) -> Found:
        """See :class:`Attends`."""

    @abstractmethod
    def attend_source(
        self, layer: int, q: Tensor, positions: LayerPositions, need_weights: bool
    ) -> Found:
        """See :class:`Attends`."""

    def move(self, order: Tensor, sentences: Optional[Tensor], group: int) -> None:
        """Hypothesis r becomes what ``order[r]`` was, and sentence b what ``sentences[b]`` was, or
        where None all stay; there are ``group`` hypotheses of each then.
        """
        self._move_target(order, sentences, group)
        if sentences is not None:
            self.sources = [each.index_select(0, sentences) for each in self.sources]
            self._closed = None if self._closed is None else self._closed[sentences]
        self.sentences, self.group = order.numel() // group, group

    @abstractmethod
    def _move_target(self, order: Tensor, sentences: Optional[Tensor], group: int) -> None:
        """:meth:`move` of what was read."""


class TensorMemory(Memory):
    """With torch's operators: the hypotheses of a sentence meet all its nodes (``nodes.py``).

    The source's mask is a bias (B', 1, 1, S).
    """

    def __init__(
        self,
        sentences: int,
        group: int,
        scale: Scale,
        layers: int,
        device: torch.device,
        dropout: Dropouts,
    ) -> None:
        super().__init__(sentences, group, scale)
        self._dropout = dropout
        self.nodes = Nodes(sentences, group, layers, device)

    def add_source(self, k: Tensor, v: Tensor) -> None:
        self.sources += [k.contiguous(), v.contiguous()]

    def close(self, mask: Optional[Tensor]) -> None:
        if mask is not None:
            self._closed = closed_keys(mask, self.sources[0].dtype)

    def open(self, position: int) -> None:
        self.nodes.open(position)

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, positions: LayerPositions
    ) -> Found:
        nodes = self.nodes
        own = v.unsqueeze(2)  # (rows, H, 1, D)
        finite = own if nodes.mask is None else own.nan_to_num()
        keys, values = nodes.write(layer, k.unsqueeze(2), finite)
        q = positions.queries(_by_sentence(q, self.group))
        bias = nodes.bias(positions.bias)
        of_nodes = nodes.by_node(positions)
        how = self.scale[0], self._dropout[0]
        out, _ = _attend(q, keys, values, of_nodes, bias, *how, nodes.mask)
        found = _by_row(out)
        # NaN to the hypothesis that has read NaN or infinity, and to no other.
        return found if nodes.mask is None else found.add_(own, alpha=0), None

    def attend_source(
        self, layer: int, q: Tensor, positions: LayerPositions, need_weights: bool
    ) -> Found:
        keys, values = self.sources[2 * layer : 2 * layer + 2]
        q = positions.queries(_by_sentence(q, self.group))
        bias = positions.bias if self._closed is None else self._closed
        if self._closed is not None and positions.bias is not None:
            bias = self._closed + positions.bias
        flat = keys.flatten(0, 1), values.flatten(0, 1)
        out, weights = _attend(q, *flat, positions, bias, self.scale[1], self._dropout[1])
        return _by_row(out), _by_row(weights) if need_weights else None

    def _move_target(self, order: Tensor, sentences: Optional[Tensor], group: int) -> None:
        self.nodes.move(order, sentences, group)


class KernelMemory(Memory):
    """With ``diet_mt/kernels``: each hypothesis meets the keys that it has read, in their order.

    Every token that some hypothesis has read has a slot, with its keys and values in every layer,
    and a hypothesis is a row of slots. New tokens take the slots that no row has any more. The
    source's keys and values are (B', S, H * R) and (B', S, H * D), its mask is (B', S).
    """

    def __init__(self, sentences: int, group: int, scale: Scale) -> None:
        super().__init__(sentences, group, scale)
        self.length = 0
        self.capacity = 0
        # Keys and values of each layer, (capacity, H * R) and (capacity, H * D).
        self.kept: List[Tensor] = []
        self._slots = torch.empty(sentences * group, 0, dtype=torch.int32)  # (rows, room)

    def add_source(self, k: Tensor, v: Tensor) -> None:
        self.sources += [each.transpose(1, 2).flatten(2).contiguous() for each in (k, v)]

    def close(self, mask: Optional[Tensor]) -> None:
        self._closed = None if mask is None else mask.contiguous()

    def open(self, position: int) -> None:
        rows, room = self._slots.shape
        if position == room:
            more = torch.empty(rows, max(room, 16), dtype=torch.int32)
            self._slots = torch.cat([self._slots, more], dim=1)
        new = kernels.free_slots(self._slots, position, self.capacity)
        if new is None:
            self.capacity = max(2 * self.capacity, self.capacity + rows)
            self.kept = [_longer(each, self.capacity) for each in self.kept]
            new = kernels.free_slots(self._slots, position, self.capacity)
            assert new is not None
        self._slots[:, position] = new
        self.length = position + 1

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, positions: LayerPositions
    ) -> Found:
        while len(self.kept) <= 2 * layer:
            self.kept += [each.new_empty(self.capacity, each[0].numel()) for each in (k, v)]
        keys = self.kept[2 * layer], self.kept[2 * layer + 1], self.length
        how = {"slots": self._slots, "new": (k, v)}
        if not positions.reads_keys:
            return self._attend(q, keys, positions, None, False, self.scale[0], **how)
        slots = self._slots[:, : self.length]
        # As attention will write them, too; here they are read before.
        keys[0].index_copy_(0, slots[:, -1].long(), k.flatten(1))
        read = keys[0].index_select(0, slots.flatten())  # (rows S, H R)
        in_order = read.view(*slots.shape, *k.shape[1:]).transpose(1, 2)  # (rows, H, S, R)
        bias = positions.key_bias(in_order, self.scale[0])  # (rows, H, 1, S)
        return self._attend(q, keys, positions, bias, False, self.scale[0], **how)

    def attend_source(
        self, layer: int, q: Tensor, positions: LayerPositions, need_weights: bool
    ) -> Found:
        k, v = self.sources[2 * layer : 2 * layer + 2]
        keys, bias = (k, v, k.size(1)), None
        if positions.reads_keys:
            by_head = k.unflatten(2, (q.size(1), -1)).transpose(1, 2)  # (B', H, S, R)
            found = positions.key_bias(by_head, self.scale[1])  # (B', H, 1, S)
            bias = None if found is None else found.repeat_interleave(self.group, dim=0)
        how = {"group": self.group, "closed": self._closed}
        return self._attend(q, keys, positions, bias, need_weights, self.scale[1], **how)

    @staticmethod
    def _attend(
        q: Tensor,
        keys: Tuple[Tensor, Tensor, int],
        positions: LayerPositions,
        of_keys: Optional[Tensor],
        need_weights: bool,
        scale: float,
        **how: object,
    ) -> Found:
        """``of_keys``: (rows, H, 1, S), what the keys add to the logits, or None."""
        if torch.is_grad_enabled() and q.requires_grad:
            raise RuntimeError(
                "a decoding run that began under torch.no_grad() gives no gradients; begin it with "
                "gradients enabled"
            )
        # To the encoding all rows are queries of one sentence at one position.
        q = positions.queries(q.transpose(0, 1)[None])  # (1, H, rows, R)
        bias = positions.query_bias(q, keys[2], scale)
        if of_keys is not None:
            of_keys = of_keys.permute(2, 1, 0, 3)  # (1, H, rows, S)
            bias = of_keys if bias is None else bias + of_keys
        out, weights = kernels.attend(
            q[0].transpose(0, 1),
            *keys,
            scale=scale,
            bias=positions.bias,
            content_bias=bias,
            need_weights=need_weights or positions.changes_output,
            **how,  # type: ignore[arg-type]
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


def _longer(x: Tensor, rows: int) -> Tensor:
    """``x`` (N, E) with room for ``rows`` rows."""
    return torch.cat([x, x.new_empty(rows - x.size(0), x.size(1))])


def _by_sentence(x: Tensor, group: int) -> Tensor:
    """(rows, H, D) -> (B', H, G, D): the hypotheses of a sentence are queries at one position."""
    return x.unflatten(0, (-1, group)).transpose(1, 2)


def _by_row(x: Tensor) -> Tensor:
    """(B', H, G, N) -> (rows, H, 1, N)."""
    return x.transpose(1, 2).flatten(0, 1).unsqueeze(2)


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    positions: LayerPositions,
    bias: Optional[Tensor],
    scale: float,
    dropout: Optional[Dropout],
    mask: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    """Attention of one decoding step: ``q`` (B, H, G, R), ``k`` (B*H, S, R), ``v`` (B*H, S, D),
    ``bias`` (B|1, H|1, 1, S), ``scale`` of q k^T, ``mask`` (B, 1, G, S), True where a key is closed
    -> (B, H, G, D) and the weights before ``dropout`` (B, H, G, S).

    ``attend`` of ``nn/attention.py`` for queries at one position, in few calls: over
    a few keys, what a call costs by itself is what counts.
    """
    by_head = q.shape[:2]
    product = q.reshape(-1, *q.shape[2:]), k.transpose(1, 2)
    logits = torch.baddbmm(q.new_empty(()), *product, beta=0, alpha=scale).unflatten(0, by_head)
    if bias is not None:
        logits += bias
    more = positions.query_bias(q, k.size(1), scale)
    if more is not None:
        logits += more
    if positions.reads_keys:
        logits += positions.key_bias(k.unflatten(0, by_head), scale)
    if mask is not None:  # last, and filled in: -inf added to NaN would be NaN
        logits.masked_fill_(mask, -math.inf)
    weights = softmax_(logits)
    kept = weights if dropout is None else dropout(weights)
    out = torch.bmm(kept.flatten(0, 1), v).unflatten(0, by_head)
    added = positions.output(kept) if positions.changes_output else None
    return out if added is None else out + added, weights
