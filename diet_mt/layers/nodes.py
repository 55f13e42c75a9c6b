"""What the hypotheses of a decoding run have read, kept once for those that share it.

Hypotheses of one sentence have most of their tokens in common. So each token that one of them has
read is a node of its sentence, with its keys and values in every layer, and a hypothesis is the set
of nodes that it has read. To reorder hypotheses moves no keys and values. The next nodes take the
slots of those that no hypothesis has read any more, wherever these are, which is why a node's
position stands beside it. All hypotheses of a sentence meet all of its nodes in one product, and a
mask closes those that they have not read. What a mask closes has the weight 0, and 0 times NaN is
NaN; so values that are no finite numbers are kept as finite ones, and :class:`TensorMemory` tells
the hypothesis whose they are.

Where each sentence has one hypothesis, its nodes stand in the order of their positions, and no mask
is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..positions import LayerPositions
from ..positions.layer import NOTHING

# Nodes by which the memory grows.
ROOM = 32
# The products take so many nodes or a multiple: sums and maxima over whole vectors are faster.
WIDTH = 16


@dataclass(frozen=True)
class ByNode(LayerPositions):
    """What ``of`` says, over keys at ``key_positions`` (B', S), which are up to ``length - 1``."""

    of: LayerPositions = NOTHING
    key_positions: Optional[Tensor] = None
    length: int = 0

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Optional[Tensor]:
        found = self.of.query_bias(q, self.length, scale)  # (B', H, G, length)
        if found is None:
            return None
        return found.gather(3, self._at((*found.shape[:3], keys)))

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
        # A query has weight on one key at most of each position: its own.
        ordered = weights.new_zeros(*weights.shape[:3], self.length)
        return self.of.output(ordered.scatter_add_(3, self._at(weights.shape), weights))

    def _at(self, shape: Sequence[int]) -> Tensor:
        assert self.key_positions is not None
        return self.key_positions[:, None, None].expand(shape)


class Nodes:
    """The nodes of ``sentences``, each with ``group`` hypotheses that have read nothing yet.

    ``width``: the first so many nodes of each sentence are all that its hypotheses have read.
    ``mask``: (B', 1, G, width), True where a hypothesis has not read a node; or None.
    ``kept``: keys (B', H, room, R) and values (B', H, room, D) of each layer, zeros where no node
    is.
    """

    def __init__(
        self, sentences: int, group: int, layers: int, device: Optional[torch.device] = None
    ) -> None:
        self.sentences, self.group = sentences, group
        self.width = 0
        self.mask: Optional[Tensor] = None
        self.kept: List[Tensor] = []
        self._layers, self._device = layers, device
        self._room, self._length = 0, 0
        self._read: Optional[Tensor] = None  # (B', G, room) bool; None: one hypothesis, all nodes
        self._positions: Optional[Tensor] = None  # (B', room), beside ``_read``
        self._new: Tuple[Tensor, Tensor] = (torch.empty(0), torch.empty(0))  # sentence, slot

    def open(self, position: int) -> None:
        """A node for the token at ``position`` of every hypothesis."""
        if self.group > 1 and self._read is None:
            self._share(position)
        self._make_room(self.width + self.group)
        self._length = position + 1
        if self._read is None or self._positions is None:
            self.width = self._length
            return
        alive = self._read.any(1)  # (B', room)
        free = alive.to(torch.uint8).sort(dim=1, stable=True).indices[:, : self.group]  # (B', G)
        self._read.scatter_(2, free[:, :, None], True)
        self._positions.scatter_(1, free, position)
        rows = torch.arange(free.numel(), device=free.device)
        self._new = rows.div(self.group, rounding_mode="floor"), free.flatten()
        last = int(alive.scatter(1, free, True).any(0).nonzero()[-1])
        self.width = -(-(last + 1) // WIDTH) * WIDTH
        self.mask = ~self._read[:, None, :, : self.width]

    def bias(self, bias: Optional[Tensor]) -> Optional[Tensor]:
        """``bias`` (H|1, 1, T) by position, or None -> by node, (B'|1, H|1, 1, width), or None."""
        if self._positions is None or bias is None:
            return bias
        return bias[:, :, self._positions[:, : self.width]].movedim(2, 0)

    def by_node(self, positions: LayerPositions) -> LayerPositions:
        """``positions`` over the nodes as they stand, but for their bias."""
        if self._positions is None:
            return positions
        return ByNode(None, positions, self._positions[:, : self.width], self._length)

    def write(self, layer: int, k: Tensor, v: Tensor) -> Tuple[Tensor, Tensor]:
        """Keys (rows, H, 1, R) and values (rows, H, 1, D) of the new nodes in one layer -> those of
        all nodes, (B' * H, width, R) and (B' * H, width, D).
        """
        if not self.kept:
            for each in (k, v) * self._layers:
                shape = (self.sentences, each.size(1), self._room, each.size(3))
                self.kept.append(each.new_zeros(shape))
        found = self.kept[2 * layer], self.kept[2 * layer + 1]
        for kept, new in zip(found, (k, v), strict=True):
            if self._read is None:
                kept.narrow(2, self.width - 1, 1).copy_(new)
            else:
                sentence, slot = self._new
                kept[sentence, :, slot] = new[:, :, 0]
        k, v = (each.flatten(0, 1).narrow(1, 0, self.width) for each in found)
        return k, v

    def move(self, order: Tensor, sentences: Optional[Tensor], group: int) -> None:
        """Hypothesis r becomes what ``order[r]`` was, and sentence b what ``sentences[b]`` was, or
        where None all stay; there are ``group`` hypotheses of each then.
        """
        if self._read is not None and group != self.group:
            self._part(order)
        else:
            if self._read is not None:
                read = self._read.flatten(0, 1).index_select(0, order)
                self._read = read.unflatten(0, (-1, group))
            if sentences is not None:
                self._move_sentences(sentences)
        self.sentences, self.group = order.numel() // group, group

    def _move_sentences(self, order: Tensor) -> None:
        """Only sentences that change their place are copied."""
        count = order.numel()
        if self._positions is not None:
            self._positions = self._positions.index_select(0, order)
        if count > self.sentences:
            self.kept = [each.index_select(0, order) for each in self.kept]
            return
        moved = order.ne(torch.arange(count, device=order.device)).nonzero().squeeze(1)
        origin = order[moved]
        for each in self.kept if moved.numel() else ():
            used = each[:, :, : self.width]
            used.index_copy_(0, moved, used.index_select(0, origin))
        self.kept = [each[:count] for each in self.kept]

    def _make_room(self, needed: int) -> None:
        if needed <= self._room:
            return
        more = -(-(needed - self._room) // ROOM) * ROOM
        self._room += more
        self.kept = [F.pad(each, (0, 0, 0, more)) for each in self.kept]
        if self._read is not None and self._positions is not None:
            self._read = F.pad(self._read, (0, more))
            self._positions = F.pad(self._positions, (0, more))

    def _share(self, length: int) -> None:
        """From one hypothesis of each sentence, which has read ``length`` tokens, to several."""
        order = torch.arange(self._room, device=self._device)
        read = order < length
        self._read = read.repeat(self.sentences, self.group, 1)
        # Where no node is, a position that the tables have.
        self._positions = order.mul_(read).repeat(self.sentences, 1)

    def _part(self, order: Tensor) -> None:
        """From several hypotheses of each sentence to one: row r has what ``order[r]`` has read."""
        assert self._read is not None
        assert self._positions is not None
        sentence = order.div(self.group, rounding_mode="floor")
        read = self._read.flatten(0, 1).index_select(0, order)  # (rows, room)
        positions = self._positions[sentence].masked_fill_(~read, self._room)
        slots = positions.argsort(dim=1)[:, : self._length]  # (rows, length)
        kept = []
        for each in self.kept:
            new = each.new_zeros(order.numel(), each.size(1), self._room, each.size(3))
            new[:, :, : self._length] = each[sentence[:, None], :, slots].transpose(1, 2)
            kept.append(new)
        self.kept, self._read, self._positions, self.mask = kept, None, None, None
        self.width = self._length
