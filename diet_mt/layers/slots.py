"""Keys and values of a decoding run at fixed addresses: a slot for each token of each hypothesis.

A step asks nothing of the device, so that it can be captured (``decoding/replay.py``). The new
tokens of the K hypotheses of a sentence take its next K slots; a mask says which slots a hypothesis
has read, and to reorder hypotheses is to reorder their masks. All hypotheses of a sentence meet all
of its slots in one call. From time to time :meth:`SlotMemory.carry` leaves behind the slots that no
hypothesis has read any more, and sentences that are done.
"""

from __future__ import annotations

import math
from typing import List, Optional, Sequence

import torch
from torch import Tensor

from ..nn.attention import Added, attend
from ..positions import LayerPositions
from .memory import Found, Scale
from .multihead import content_bias
from .nodes import ByNode
from .store import Store


class SlotMemory:
    """Of ``sentences`` with ``group`` hypotheses each; ``scale`` as in
    :class:`~diet_mt.layers.memory.Memory`.

    ``closed``: (B, K, width), 0 where a hypothesis has read a slot, otherwise -inf.
    ``key_positions``: (B, width), which token of a sentence stands in a slot.
    ``kept``: keys (B, width, H, R) and values (B, width, H, D) of each layer; ``sources``: those of
    the source, (B, S, H, R) and (B, S, H, D), and ``mask`` (B, 1, 1, S), 0 or -inf.
    """

    def __init__(
        self, store: Store, sentences: int, group: int, scale: Scale, dtype: torch.dtype
    ) -> None:
        self.sentences, self.group, self.scale = sentences, group, scale
        self.kept: List[Tensor] = []
        self.sources: List[Tensor] = []
        self._store, self._dtype = store, dtype
        self._length = 0
        self._beams = torch.arange(group, device=store.device)
        self._beams = store.put("beams", self._beams)
        own = torch.full((group, group), -math.inf, device=store.device).fill_diagonal_(0.0)
        self._own = store.put("own slots", own.to(dtype))  # of K new slots, by hypothesis
        self.slot = store.view("slot", (1,), torch.long)

    def add_source(self, k: Tensor, v: Tensor) -> None:
        """Keys (B, S, H, R) and values (B, S, H, D) of the source in the next layer."""
        for each in (k, v):
            self.sources.append(self._store.put(f"source {len(self.sources)}", each))

    def close(self, mask: Tensor) -> None:
        """``mask`` (B, S): True at keys of the source that nobody may look at."""
        closed = torch.zeros_like(mask, dtype=self._dtype).masked_fill_(mask, -math.inf)
        self.mask = self._store.put("source mask", closed[:, None, None])

    def begin(self, width: int, length: int, new: Sequence[Tensor]) -> None:
        """Nothing has been read; there is room for ``width`` slots and ``length`` positions.

        ``new``: keys (1, H, R) and values (1, H, D) such as each layer will write.
        """
        self._reshape(width, length)
        self.kept = [self._view(number, each) for number, each in enumerate(new)]
        self.slot.zero_()

    def _reshape(self, width: int, length: int) -> None:
        """Nothing in the slots."""
        view, sentences = self._store.view, self.sentences
        self.width, self._length = width, length
        self.closed = view("closed", (sentences, self.group, width), self._dtype, room=2)
        self.closed.fill_(-math.inf)
        self.key_positions = view("key positions", (sentences, width), torch.long, room=2).zero_()

    def _view(self, number: int, like: Tensor) -> Tensor:
        """Slots for what ends in the two dimensions of ``like``."""
        shape = self.sentences, self.width, *like.shape[-2:]
        return self._store.view(f"target {number}", shape, like.dtype, room=2)

    def carry(
        self, sentences: Optional[Tensor], read: Tensor, count: int, width: int, length: int
    ) -> None:
        """Sentence b becomes what ``sentences[b]`` was, or where None all stay, with the slots that
        ``read`` (B, old width) says, ``count`` at most; then as :meth:`begin`.
        """
        slots = read.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :count]
        before, closed, positions = self.kept, self.closed, self.key_positions
        each = torch.arange(slots.size(0), device=slots.device)
        if sentences is not None:
            each, slots = sentences, slots[sentences]
            closed, positions = closed[sentences], positions[sentences]
            self.sources = [
                self._store.put(f"source {number}", source[sentences])
                for number, source in enumerate(self.sources)
            ]
            self.mask = self._store.put("source mask", self.mask[sentences])
            self.sentences = sentences.numel()
        closed = closed.gather(2, slots[:, None].expand(-1, self.group, -1))  # (B, K, count)
        positions = positions.gather(1, slots)
        self.kept = []
        self._reshape(width, length)
        self.closed[:, :, :count] = closed
        self.key_positions[:, :count] = positions
        for number, kept in enumerate(before):
            taken = kept[each[:, None], slots]  # (B, count, H, R); the new place may be the old
            new = self._view(number, kept)
            new[:, :count] = taken
            self.kept.append(new)
        self.slot.fill_(count)

    def open(self, position: Tensor) -> None:
        """Every hypothesis is about to read its token at ``position`` (1,)."""
        self._new = self.slot + self._beams  # (K,)
        shape = self.sentences, self.group
        self.closed.index_copy_(2, self._new, self._own.expand(self.sentences, -1, -1))
        self.key_positions.index_copy_(1, self._new, position.expand(shape))

    def move(self, parents: Tensor) -> None:
        """Hypothesis k of sentence b becomes what ``parents[b, k]`` was, after a step."""
        order = parents.unsqueeze(2).expand_as(self.closed)
        self.closed.copy_(self.closed.gather(1, order))
        self.slot.add_(self.group)

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, positions: LayerPositions
    ) -> Found:
        """See :meth:`~diet_mt.layers.memory.Memory.attend`."""
        for number, each in enumerate((k, v), start=2 * layer):
            # 0 times NaN, where a mask closes a slot, would be NaN in all hypotheses.
            finite = each.nan_to_num(0.0, 0.0, 0.0).unflatten(0, (-1, self.group))
            self.kept[number].index_copy_(1, self._new, finite)
        keys, values = self.kept[2 * layer : 2 * layer + 2]
        added = self.closed[:, None]  # (B, 1, K, width)
        if positions.bias is not None:
            bias = positions.bias.to(self._dtype).expand(self.sentences, -1, -1, -1)[:, :, 0]
            at = self.key_positions[:, None].expand(-1, bias.size(1), -1)
            added = bias.gather(2, at).unsqueeze(2) + added  # (B, H|1, K, width)
        by_slot = ByNode(None, positions, self.key_positions, self._length)
        q = positions.queries(self._by_sentence(q))
        out = self._attend(q, keys, values, by_slot, added, self.scale[0])
        # NaN to the hypothesis that reads NaN or infinity.
        return torch.addcmul(out, k[..., : v.size(-1)], v, value=0.0).unsqueeze(2), None

    def attend_source(
        self, layer: int, q: Tensor, positions: LayerPositions, need_weights: bool
    ) -> Found:
        """See :meth:`~diet_mt.layers.memory.Memory.attend_source`; without weights."""
        keys, values = self.sources[2 * layer : 2 * layer + 2]
        added = self.mask
        if positions.bias is not None:
            added = positions.bias.to(self._dtype) + added  # (B, H|1, 1, S)
        q = positions.queries(self._by_sentence(q))
        return self._attend(q, keys, values, positions, added, self.scale[1]).unsqueeze(2), None

    def _by_sentence(self, x: Tensor) -> Tensor:
        """(rows, H, D) -> (B, H, K, D): hypotheses are queries at one position."""
        return x.unflatten(0, (-1, self.group)).transpose(1, 2)

    def _attend(
        self,
        q: Tensor,
        keys: Tensor,
        values: Tensor,
        positions: LayerPositions,
        added: Tensor,
        scale: float,
    ) -> Tensor:
        """``q`` (B, H, K, R) over keys (B, S, H, R) and values (B, S, H, D), with what is ``added``
        to the logits (B, H|1, K|1, S) -> (rows, H, D).
        """
        keys, values = keys.transpose(1, 2), values.transpose(1, 2)
        more = content_bias(positions, q, keys, scale)
        out, _ = attend(
            q,
            keys,
            values,
            Added(content_bias=added if more is None else more.to(added.dtype) + added),
            scale=scale,
            output=positions.output if positions.changes_output else None,
        )
        return out.transpose(1, 2).flatten(0, 1)
