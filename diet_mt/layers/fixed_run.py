"""A decoding run whose steps have fixed shapes and addresses, and ask nothing of the device.

Steps are made in periods of :data:`PERIOD`. Before each, :meth:`FixedRun.begin` puts what depends
on the number of a step into tables, a row for each step, of which the steps read the row that a
counter on the device says.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..positions import LayerPositions, Span
from ..positions.layer import NOTHING
from ..positions.spans import as_tensor, tokens_in
from .call import AttentionCall, DecoderCall, for_layers
from .run import SelfCache, SourceCache, one_step
from .slots import SlotMemory
from .store import Store

# Steps between two looks at what is on the device.
PERIOD = 8
# Slots, positions and source tokens are rounded up to multiples, so that few shapes serve all.
SLOTS, POSITIONS, SOURCES = 64, 64, 32


def rounded(count: int, unit: int) -> int:
    """``count`` up to the next multiple of ``unit``."""
    return -(-count // unit) * unit


def longest(decoder: Any) -> Tuple[int, int]:
    """Tokens of a target and of a source that every table has."""
    targets, sources = [decoder.token_positions.longest], [1 << 62]
    for positions in (decoder.self_attn_positions, decoder.encoder_attn_positions):
        if positions is not None:
            targets.append(positions.shape.max_queries)
    if decoder.self_attn_positions is not None:
        targets.append(decoder.self_attn_positions.shape.max_keys)
    if decoder.encoder_attn_positions is not None:
        sources.append(decoder.encoder_attn_positions.shape.max_keys)
    if decoder.embed_positions is not None:
        targets.append(decoder.embed_positions.max_positions)
    return min(targets), min(sources)


class FixedRun:
    """A run of ``group`` hypotheses for each of ``sentences``, of which those beyond the source's
    are there to fill up a shape.

    ``row`` (1,): number of the step in its period, and ``step`` (1,) in all, on the device.

    Args:
        source: encoder output (S, B, E'); mask: (B, S), True at closed keys, or None.
        keys: positions of the source.
    """

    def __init__(
        self,
        decoder: Any,
        store: Store,
        source: Tensor,
        mask: Optional[Tensor],
        keys: Span,
        sentences: int,
        group: int,
    ) -> None:
        layers = list(decoder.layers.children())
        self._store, self._layers, self._dtype = store, len(layers), source.dtype
        self._modules = [layer.self_attn for layer in layers]
        self._tokens, self._own_positions = decoder.token_positions, decoder.self_attn_positions
        self._cross_positions = decoder.encoder_attn_positions
        self._limit, _ = longest(decoder)
        scale = layers[0].self_attn.scaling, layers[0].encoder_attn.scaling
        self.memory = SlotMemory(store, sentences, group, scale, source.dtype)
        self._caches: List[Tuple[SelfCache, SourceCache]] = []
        for number, layer in enumerate(layers):
            own = SelfCache(self.memory, number, layer.self_attn)
            other = SourceCache(self.memory, number, layer.encoder_attn)
            own.project.hold(store, f"self {number}")
            other.project.hold(store, f"cross {number}")
            self._caches.append((own, other))
        self.sources = rounded(tokens_in(keys), SOURCES)
        self._read(layers, source, mask, keys)
        self.row = store.view("row", (1,), torch.long)
        self.step = store.view("step", (1,), torch.long)

    def _read(
        self, layers: Sequence[Any], source: Tensor, mask: Optional[Tensor], keys: Span
    ) -> None:
        """Keys and values of the source."""
        length, count = source.shape[:2]
        more = 0, 0, 0, 0, 0, self.sources - length, 0, self.memory.sentences - count
        found = for_layers(self._cross_positions, self._layers, self._tokens.at(0, 1), keys)
        for layer, positions in zip(layers, found, strict=True):
            module = layer.encoder_attn
            k = positions.keys(module.split(module.k_proj(source)), mask)  # (B, H, S, R)
            v = positions.values(module.split(module.v_proj(source)), mask)
            self.memory.add_source(*(F.pad(each.transpose(1, 2), more) for each in (k, v)))
        closed = source.new_ones(self.memory.sentences, self.sources, dtype=torch.bool)
        closed[:count, :length] = False if mask is None else mask
        closed[count:, 0] = False
        self.memory.close(closed)
        numbers = torch.arange(self.sources, device=source.device).clamp_(max=length - 1)
        self._source_keys = as_tensor(keys, source.device)[numbers]

    def start(self, width: int) -> None:
        """Nothing has been read; a sentence has ``width`` slots."""
        self.begin(0)
        new = []
        for part, module in zip(self._own, self._modules, strict=True):
            one = torch.zeros(1, module.num_heads, 1, module.head_dim, device=self._store.device)
            one, part = one.to(self._dtype), part.step(0, self.length)
            new += [each[:, :, 0] for each in (part.keys(one, None), part.values(one, None))]
        self.memory.begin(width, self.length, new)

    def begin(self, start: int) -> None:
        """The next period is that of the tokens from ``start`` on."""
        device, stop = self._store.device, start + PERIOD
        self.length = rounded(stop, POSITIONS)
        last = min(stop, self._limit)
        numbers = torch.arange(self.length, device=device).clamp_(max=last - 1)
        keys = as_tensor(self._tokens.at(0, last), device)[numbers]
        queries = self._store.put("queries", keys[start:stop])
        self._queries = queries
        own = for_layers(self._own_positions, self._layers, queries, keys)
        cross = for_layers(self._cross_positions, self._layers, queries, self._source_keys)
        self._own, self._cross = self._held("own", own), self._held("other", cross)
        self.row.zero_()
        self.step.fill_(start)

    def _held(self, name: str, parts: Sequence[LayerPositions]) -> List[LayerPositions]:
        """``parts`` where they stay from period to period."""
        held: Dict[int, LayerPositions] = {}
        for part in parts:
            if id(part) not in held and part is not NOTHING:
                tensors = {
                    each.name: self._store.put(f"{name} {len(held)} {each.name}", value)
                    for each in fields(part)
                    for value in [getattr(part, each.name)]
                    if isinstance(value, Tensor)
                }
                held[id(part)] = replace(part, **tensors)
        return [held.get(id(part), part) for part in parts]

    def position(self) -> Tensor:
        """Of the token that is read next, (1,)."""
        return self._queries.index_select(0, self.row)

    def calls(self) -> List[DecoderCall]:
        """What each layer needs to read the next token of every hypothesis."""
        self.memory.open(self.step)
        own = one_step(self._own, self.row, self.length)
        cross = one_step(self._cross, self.row, self.sources)
        return [
            DecoderCall(AttentionCall(one, cache=first), AttentionCall(two, cache=second))
            for one, two, (first, second) in zip(own, cross, self._caches, strict=True)
        ]

    def move(self, parents: Tensor) -> None:
        """Ends a step; hypothesis k of sentence b becomes what ``parents[b, k]`` was."""
        self.memory.move(parents)
        self.row.add_(1)
        self.step.add_(1)
