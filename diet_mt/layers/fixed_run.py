"""Decoding run with steps of fixed shapes and addresses, which read nothing from the device.

Steps form periods of :data:`PERIOD`. Before each period, :meth:`FixedRun.begin` computes tables
with a row for each step; a counter on the device selects the row.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..positions import PositionRange, PositionTerms
from ..positions.position_ids import as_tensor, num_positions
from ..positions.terms import NO_TERMS
from .multihead import AttentionCall, DecoderCall, for_layers
from .run import LayerCache, one_step, source_keys
from .slots import SlotCache, Store

# Steps between two reads from the device.
PERIOD = 8
# Slots, positions and source tokens are rounded up to multiples of these, to limit the shapes.
SLOTS, POSITIONS, SOURCES = 64, 64, 32


def rounded(count: int, unit: int) -> int:
    """``count`` rounded up to a multiple of ``unit``."""
    return -(-count // unit) * unit


def longest(decoder: Any) -> Tuple[int, int]:
    """Longest target and source, in tokens, that all tables of ``decoder`` cover."""
    own, cross = decoder.self_attn_positions, decoder.encoder_attn_positions
    targets, sources = [decoder.token_positions.longest], [1 << 62]
    if own is not None:
        targets += [own.shape.max_queries, own.shape.max_keys]
    if cross is not None:
        targets.append(cross.shape.max_queries)
        sources.append(cross.shape.max_keys)
    if decoder.embed_positions is not None:
        targets.append(decoder.embed_positions.max_positions)
    return min(targets), min(sources)


class FixedRun:
    """A run of ``sentences`` with ``group`` hypotheses each; ``sentences`` from B on are padding.

    ``row`` and ``step``, (1,) on the device: index of the step in its period and in the run.

    Args:
        source: encoder output (S, B, E'); key_padding: (B, S), or None.
        keys: positions of the source.
    """

    def __init__(
        self,
        decoder: Any,
        store: Store,
        source: Tensor,
        key_padding: Optional[Tensor],
        keys: PositionRange,
        sentences: int,
        group: int,
    ) -> None:
        layers = list(decoder.layers.children())
        self._store, self._layers, self._dtype = store, len(layers), source.dtype
        self._modules = [layer.self_attn for layer in layers]
        self._tokens, self._own_positions = decoder.token_positions, decoder.self_attn_positions
        self._cross_positions = decoder.encoder_attn_positions
        self._limit, _ = longest(decoder)
        self.cache = SlotCache(store, sentences, group, source.dtype)
        self._caches: List[Tuple[LayerCache, LayerCache]] = []
        for number, layer in enumerate(layers):
            own = LayerCache(self.cache, number, layer.self_attn)
            cross = LayerCache(self.cache, number, layer.encoder_attn)
            own.project.hold(store, f"self {number}")
            cross.project.hold(store, f"cross {number}")
            self._caches.append((own, cross))
        self.sources = rounded(num_positions(keys), SOURCES)
        self._read([layer.encoder_attn for layer in layers], source, key_padding, keys)
        self.row = store.view("row", (1,), torch.long)
        self.step = store.view("step", (1,), torch.long)

    def _read(
        self,
        modules: Sequence[Any],
        source: Tensor,
        key_padding: Optional[Tensor],
        keys: PositionRange,
    ) -> None:
        """Stores keys and values of the source, padded to the shapes of the run."""
        length, count = source.shape[:2]
        more = 0, 0, 0, 0, 0, self.sources - length, 0, self.cache.sentences - count
        parts = for_layers(self._cross_positions, self._layers, self._tokens.at(0, 1), keys)
        for pair in source_keys(modules, parts, source, key_padding):
            self.cache.add_source(*(F.pad(each.transpose(1, 2), more) for each in pair))
        padding = source.new_ones(self.cache.sentences, self.sources, dtype=torch.bool)
        padding[:count, :length] = False if key_padding is None else key_padding
        padding[count:, 0] = False  # softmax over padding alone would be 0/0
        self.cache.mask_source(padding)
        numbers = torch.arange(self.sources, device=source.device).clamp_(max=length - 1)
        self._source_keys = as_tensor(keys, source.device)[numbers]

    def start(self, width: int) -> None:
        """Prepares the first step, with ``width`` slots per sentence."""
        self.begin(0)
        new = []
        for part, module in zip(self._own, self._modules, strict=True):
            one = torch.zeros(1, module.num_heads, 1, module.head_dim, device=self._store.device)
            one, part = one.to(self._dtype), part.step(0, self.length)
            new += [each[:, :, 0] for each in (part.keys(one, None), part.values(one, None))]
        self.cache.begin(width, self.length, new)

    def begin(self, start: int) -> None:
        """Begins the period whose first step is ``start``."""
        device, stop = self._store.device, start + PERIOD
        self.length = rounded(stop, POSITIONS)
        last = min(stop, self._limit)
        numbers = torch.arange(self.length, device=device).clamp_(max=last - 1)
        keys = as_tensor(self._tokens.at(0, last), device)[numbers]
        queries = self._store.put("queries", keys[start:stop])
        self._queries = queries
        own = for_layers(self._own_positions, self._layers, queries, keys)
        cross = for_layers(self._cross_positions, self._layers, queries, self._source_keys)
        self._own, self._cross = self._held("own terms", own), self._held("cross terms", cross)
        self.row.zero_()
        self.step.fill_(start)

    def _held(self, name: str, parts: Sequence[PositionTerms]) -> List[PositionTerms]:
        """``parts`` with their tensors at the same addresses in every period."""
        held: Dict[int, PositionTerms] = {}
        for part in parts:
            if id(part) not in held and part is not NO_TERMS:
                tensors = {
                    each.name: self._store.put(f"{name} {len(held)} {each.name}", value)
                    for each in fields(part)
                    for value in [getattr(part, each.name)]
                    if isinstance(value, Tensor)
                }
                held[id(part)] = replace(part, **tensors)
        return [held.get(id(part), part) for part in parts]

    def position(self) -> Tensor:
        """Position of the next token, (1,)."""
        return self._queries.index_select(0, self.row)

    def calls(self) -> List[DecoderCall]:
        """A call for each layer, to read the next token of every hypothesis."""
        self.cache.open(self.step)
        own = one_step(self._own, self.row, self.length)
        cross = one_step(self._cross, self.row, self.sources)
        return [
            DecoderCall(AttentionCall(one, cache=first), AttentionCall(two, cache=second))
            for one, two, (first, second) in zip(own, cross, self._caches, strict=True)
        ]

    def move(self, parents: Tensor) -> None:
        """Ends a step: hypothesis k of sentence b becomes its hypothesis ``parents[b, k]``."""
        self.cache.move(parents)
        self.row.add_(1)
        self.step.add_(1)
