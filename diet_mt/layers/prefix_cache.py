"""Keys and values of a decoding run with torch's operators: a prefix tree of tokens.

Hypotheses of a sentence share most of their tokens. Each token that one of them has read is a node
of its sentence, with its keys and values in every layer, and a hypothesis is the set of its nodes.
Reordering the hypotheses of a sentence moves no keys and values. New nodes take the slots of nodes
that are in no hypothesis any more, in no particular order, so each node stores its position. All
hypotheses of a sentence attend over all of its nodes in one product, with the nodes of other
hypotheses masked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn.attention import key_padding_bias
from ..positions import PositionTerms
from ..positions.terms import NO_TERMS
from .cache import Cache, Output, attend_by_sentence, finite, with_own_nan

# Memory grows by a multiple of this number of nodes.
ROOM = 32
# Products cover a multiple of this number of nodes: sums and maxima of whole vectors are faster.
WIDTH = 16


@dataclass(frozen=True)
class ByNode(PositionTerms):
    """The terms of ``of``, without its bias, over keys in the order of their nodes.

    ``key_positions``: (B', S), the position of each node, below ``length``.
    """

    of: PositionTerms = NO_TERMS
    key_positions: Optional[Tensor] = None
    length: int = 0

    def queries(self, q: Tensor) -> Tensor:
        return self.of.queries(q)

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Optional[Tensor]:
        bias = self.of.query_bias(q, self.length, scale)  # (B', H, G, length)
        return None if bias is None else bias.gather(3, self._at((*bias.shape[:3], keys)))

    @property
    def reads_keys(self) -> bool:
        return self.of.reads_keys

    def key_bias(
        self, k: Tensor, scale: float, key_positions: Optional[Tensor] = None
    ) -> Optional[Tensor]:
        return self.of.key_bias(k, scale, self.key_positions)

    @property
    def changes_output(self) -> bool:
        return self.of.changes_output

    def output(self, weights: Tensor) -> Optional[Tensor]:
        # At each position, a query attends to one node at most: that of its own hypothesis.
        ordered = weights.new_zeros(*weights.shape[:3], self.length)
        return self.of.output(ordered.scatter_add_(3, self._at(weights.shape), weights))

    def _at(self, shape: Sequence[int]) -> Tensor:
        assert self.key_positions is not None
        return self.key_positions[:, None, None].expand(shape)


class PrefixCache(Cache):
    """The trees of ``sentences`` with ``group`` hypotheses each, on any device, in any precision.

    Attributes:
        target: keys (B', H, room, D_k) and values (B', H, room, D) of each layer, zeros where
            there was never a node; all hypotheses are in the first ``width`` nodes.
        sources: keys (B', H, S, D_k) and values (B', H, S, D) of the source in each layer.
        key_padding: the bias of the source's key padding, (B', 1, 1, S), or None.
    """

    def __init__(self, sentences: int, group: int, device: Optional[torch.device] = None) -> None:
        super().__init__(sentences, group)
        self.length = self.width = self._room = 0
        self._in_order = True  # one hypothesis per sentence so far: node i is at position i
        # (B', group, room): whether a hypothesis contains a node; (B', room): positions of nodes.
        self._read = torch.zeros(sentences, group, 0, dtype=torch.bool, device=device)
        self._positions = torch.zeros(sentences, 0, dtype=torch.long, device=device)

    def add_source(self, k: Tensor, v: Tensor) -> None:
        self.sources += [k.contiguous(), v.contiguous()]

    def mask_source(self, key_padding: Optional[Tensor]) -> None:
        if key_padding is not None:
            self.key_padding = key_padding_bias(key_padding, self.sources[0].dtype)

    def open(self, position: int) -> None:
        self.length = position + 1
        more = -(-max(self.width + self.group - self._room, 0) // ROOM) * ROOM
        if more:
            self._room += more
            self.target = [F.pad(each, (0, 0, 0, more)) for each in self.target]
            self._read, self._positions = (
                F.pad(each, (0, more)) for each in (self._read, self._positions)
            )
        alive = self._read.any(1)  # (B', room)
        # (B', group): the first slots that no hypothesis uses.
        free = alive.to(torch.uint8).sort(dim=1, stable=True).indices[:, : self.group]
        self._read.scatter_(2, free[:, :, None], True)
        self._positions.scatter_(1, free, position)
        rows = torch.arange(free.numel(), device=free.device)
        self._new = rows.div(self.group, rounding_mode="floor"), free.flatten()  # sentence, slot
        self._in_order = self._in_order and self.group == 1
        last = position
        if not self._in_order:  # reads from the device
            last = int(alive.scatter(1, free, True).any(0).nonzero()[-1])
        self.width = -(-(last + 1) // WIDTH) * WIDTH
        self._others = ~self._read[:, None, :, : self.width]  # (B', 1, group, width)

    def bias(self, bias: Optional[Tensor], dtype: torch.dtype) -> Tensor:
        """``bias`` by position, (H|1, 1, S) or None -> by node, (B', H|1, group, width), with -inf
        at the nodes of other hypotheses.
        """
        if bias is None:
            by_node = torch.zeros((), dtype=dtype, device=self._others.device)
        else:
            at = self._positions[:, : self.width]
            by_node = bias.to(dtype)[:, :, at].movedim(2, 0)  # (B', H|1, 1, width)
        return by_node.masked_fill(self._others, -math.inf)

    def write(self, layer: int, k: Tensor, v: Tensor) -> Tuple[Tensor, Tensor]:
        """Stores the keys (rows, H, D_k) and values (rows, H, D) of the new nodes in one layer.

        Returns those of all nodes, (B', H, width, D_k) and (B', H, width, D).
        """
        nodes: List[Tensor] = []
        for number, new in enumerate((k, v), start=2 * layer):
            if number == len(self.target):
                shape = self.sentences, new.size(1), self._room, new.size(2)
                self.target.append(new.new_zeros(shape))
            sentence, slot = self._new
            self.target[number][sentence, :, slot] = new
            nodes.append(self.target[number][:, :, : self.width])
        return nodes[0], nodes[1]

    def attend(
        self, layer: int, module: Any, q: Tensor, k: Tensor, v: Tensor, positions: PositionTerms
    ) -> Output:
        keys, values = self.write(layer, finite(k), finite(v))
        bias = self.bias(positions.bias, q.dtype)
        by_node = ByNode(None, positions, self._positions[:, : self.width], self.length)
        out, _ = attend_by_sentence(module, q, keys, values, by_node, bias)
        return with_own_nan(out, k, v), None

    def attend_source(
        self, layer: int, module: Any, q: Tensor, positions: PositionTerms, need_weights: bool
    ) -> Output:
        keys, values = self.sources[2 * layer : 2 * layer + 2]
        bias = None if positions.bias is None else positions.bias.to(q.dtype)[None]
        if self.key_padding is not None:
            bias = self.key_padding if bias is None else self.key_padding + bias
        return attend_by_sentence(module, q, keys, values, positions, bias, need_weights)

    def _move_target(self, order: Tensor, sentences: Optional[Tensor], group: int) -> None:
        self._read = self._read.flatten(0, 1).index_select(0, order).unflatten(0, (-1, group))
        if sentences is None:
            return
        self._positions = self._positions.index_select(0, sentences)
        count = sentences.numel()
        if count > self.sentences:
            self.target = [each.index_select(0, sentences) for each in self.target]
            return
        # Only sentences whose place changes are copied.
        moved = sentences.ne(torch.arange(count, device=order.device)).nonzero().squeeze(1)
        origin = sentences[moved]
        for each in self.target if moved.numel() else ():
            used = each[:, :, : self.width]
            used.index_copy_(0, moved, used.index_select(0, origin))
        self.target = [each[:count] for each in self.target]
