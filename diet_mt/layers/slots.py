"""Keys and values of a decoding run at fixed addresses: a slot for each token of each hypothesis.

A step reads nothing from the device, so that it can be captured (``decoding/replay.py``). The new
tokens of the K hypotheses of a sentence take its next K slots; a mask marks the slots of each
hypothesis, and reordering hypotheses reorders their masks. All hypotheses of a sentence attend over
all of its slots in one call. After each period, :meth:`SlotCache.carry` drops slots of no
hypothesis and finished sentences.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List, Optional, Sequence

import torch
from torch import Tensor

from ..nn.attention import key_padding_bias
from ..positions import PositionTerms
from .cache import Output, attend_by_sentence, finite, with_own_nan
from .prefix_cache import ByNode


class Store:
    """Tensors at fixed addresses for captured steps: by name, views of buffers that only grow.

    ``moves``: number of buffers allocated so far. New buffers are zeros.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.moves = 0
        self._flat: Dict[str, Tensor] = {}

    def view(self, name: str, shape: Sequence[int], dtype: torch.dtype, room: int = 1) -> Tensor:
        """The tensor ``name`` in this shape. ``room``: factor of the size of new buffers."""
        count = math.prod(shape)
        flat = self._flat.get(name)
        if flat is None or flat.numel() < count or flat.dtype != dtype:
            size = count if flat is None else max(count, 3 * flat.numel() // 2)
            self._flat[name] = flat = torch.zeros(room * size, dtype=dtype, device=self.device)
            self.moves += 1
        return flat[:count].view(tuple(shape))

    def put(self, name: str, value: Tensor) -> Tensor:
        """Copies ``value`` to the tensor ``name``, which it must not overlap, and returns that."""
        return self.view(name, value.shape, value.dtype).copy_(value)

    def tensors(self) -> Iterable[Tensor]:
        """All buffers."""
        return self._flat.values()


class SlotCache:
    """Cache of ``sentences`` (B) with ``group`` (K) hypotheses each; attends as
    :class:`~diet_mt.layers.cache.Cache` does.

    Attributes:
        mask: (B, K, width), 0 at the slots of a hypothesis, otherwise -inf.
        key_positions: (B, width), position of the token in each slot.
        slot: (1,), the next free slot of all sentences.
        target: keys (B, width, H, D_k) and values (B, width, H, D) of each layer.
        sources: keys (B, S, H, D_k) and values (B, S, H, D) of the source in each layer.
        key_padding: the bias of the source's key padding, (B, 1, 1, S).
    """

    def __init__(self, store: Store, sentences: int, group: int, dtype: torch.dtype) -> None:
        self.sentences, self.group = sentences, group
        self.target: List[Tensor] = []
        self.sources: List[Tensor] = []
        self._store, self._dtype = store, dtype
        self._length = 0
        self._beams = store.put("beams", torch.arange(group, device=store.device))
        own = torch.full((group, group), -math.inf, device=store.device).fill_diagonal_(0.0)
        self._own = store.put("own slots", own.to(dtype))  # (K, K), the mask of the new slots
        self.slot = store.view("slot", (1,), torch.long)

    def add_source(self, k: Tensor, v: Tensor) -> None:
        """Stores keys (B, S, H, D_k) and values (B, S, H, D) of the source in the next layer."""
        for each in (k, v):
            self.sources.append(self._store.put(f"source {len(self.sources)}", each))

    def mask_source(self, key_padding: Tensor) -> None:
        """Stores ``key_padding`` (B, S) of the source as a bias."""
        bias = key_padding_bias(key_padding, self._dtype)
        self.key_padding = self._store.put("key padding", bias)

    def begin(self, width: int, length: int, new: Sequence[Tensor]) -> None:
        """Prepares ``width`` empty slots for tokens at positions below ``length``.

        ``new``: keys (1, H, D_k) and values (1, H, D) of each layer, as examples.
        """
        self._reshape(width, length)
        self.target = [self._view(number, each) for number, each in enumerate(new)]
        self.slot.zero_()

    def _reshape(self, width: int, length: int) -> None:
        view, sentences = self._store.view, self.sentences
        self.width, self._length = width, length
        self.mask = view("mask", (sentences, self.group, width), self._dtype, room=2)
        self.mask.fill_(-math.inf)
        self.key_positions = view("key positions", (sentences, width), torch.long, room=2).zero_()

    def _view(self, number: int, like: Tensor) -> Tensor:
        """Keys (B, width, H, D_k) or values (B, width, H, D), such as ``like`` (..., H, D_k|D)."""
        shape = self.sentences, self.width, *like.shape[-2:]
        return self._store.view(f"target {number}", shape, like.dtype, room=2)

    def carry(
        self, sentences: Optional[Tensor], read: Tensor, count: int, width: int, length: int
    ) -> None:
        """Keeps the slots in ``read`` (B, old width), at most ``count``, and reshapes as
        :meth:`begin` does. Sentence b becomes ``sentences[b]``; None: all stay.
        """
        slots = read.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :count]
        before, mask, positions = self.target, self.mask, self.key_positions
        origin = torch.arange(slots.size(0), device=slots.device)
        if sentences is not None:
            origin, slots = sentences, slots[sentences]
            mask, positions = mask[sentences], positions[sentences]
            self.sources = [
                self._store.put(f"source {number}", source[sentences])
                for number, source in enumerate(self.sources)
            ]
            self.key_padding = self._store.put("key padding", self.key_padding[sentences])
            self.sentences = sentences.numel()
        mask = mask.gather(2, slots[:, None].expand(-1, self.group, -1))  # (B, K, count)
        positions = positions.gather(1, slots)
        self.target = []
        self._reshape(width, length)
        self.mask[:, :, :count] = mask
        self.key_positions[:, :count] = positions
        for number, old in enumerate(before):
            taken = old[origin[:, None], slots]  # (B, count, H, D_k); new memory may be old memory
            new = self._view(number, old)
            new[:, :count] = taken
            self.target.append(new)
        self.slot.fill_(count)

    def open(self, position: Tensor) -> None:
        """Opens slots for the token of every hypothesis at ``position`` (1,)."""
        self._new = self.slot + self._beams  # (K,)
        shape = self.sentences, self.group
        self.mask.index_copy_(2, self._new, self._own.expand(self.sentences, -1, -1))
        self.key_positions.index_copy_(1, self._new, position.expand(shape))

    def move(self, parents: Tensor) -> None:
        """Ends a step: hypothesis k of sentence b becomes its ``parents[b, k]``, (B, K)."""
        order = parents.unsqueeze(2).expand_as(self.mask)
        self.mask.copy_(self.mask.gather(1, order))
        self.slot.add_(self.group)

    def attend(
        self, layer: int, module: Any, q: Tensor, k: Tensor, v: Tensor, positions: PositionTerms
    ) -> Output:
        """See :meth:`~diet_mt.layers.cache.Cache.attend`."""
        keys, values = self.target[2 * layer : 2 * layer + 2]
        for slots, new in ((keys, k), (values, v)):
            slots.index_copy_(1, self._new, finite(new).unflatten(0, (-1, self.group)))
        mask = self.mask[:, None]  # (B, 1, K, width)
        if positions.bias is not None:
            bias = positions.bias.to(self._dtype).expand(self.sentences, -1, -1, -1)[:, :, 0]
            at = self.key_positions[:, None].expand(-1, bias.size(1), -1)
            mask = bias.gather(2, at).unsqueeze(2) + mask  # (B, H|1, K, width)
        by_slot = ByNode(None, positions, self.key_positions, self._length)
        keys, values = keys.transpose(1, 2), values.transpose(1, 2)
        out, _ = attend_by_sentence(module, q, keys, values, by_slot, mask)
        return with_own_nan(out, k, v), None

    def attend_source(
        self, layer: int, module: Any, q: Tensor, positions: PositionTerms, need_weights: bool
    ) -> Output:
        """See :meth:`~diet_mt.layers.cache.Cache.attend_source`; never returns weights."""
        keys, values = (each.transpose(1, 2) for each in self.sources[2 * layer : 2 * layer + 2])
        bias = self.key_padding
        if positions.bias is not None:
            bias = positions.bias.to(self._dtype) + bias  # (B, H|1, 1, S)
        return attend_by_sentence(module, q, keys, values, positions, bias)
