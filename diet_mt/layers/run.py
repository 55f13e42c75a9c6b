"""State of one run of step-by-step decoding.

Keys and values are in a cache (``cache.py``): those of the target once for all hypotheses that
share them, those of the source once per sentence. Position terms are computed for a block of
positions at a time and then sliced. Projections are fused into one product. All of it ends with the
run, so whatever happens to the model afterwards (an update, another precision or device), the next
run reads the model as it is then.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

from .. import kernels
from ..nn.batch import regroup
from ..nn.linear import linear
from ..positions import AttentionPositions, PositionRange, PositionTerms, TokenPositions
from ..positions.position_ids import num_positions
from ..positions.terms import NO_TERMS, Row
from .cache import KernelCache, Output
from .int8 import joined
from .multihead import AttentionCall, DecoderCall
from .prefix_cache import PrefixCache
from .slots import Store

# Positions for which a run computes the terms of an encoding at once.
BLOCK = 32


class Projection:
    """Linear layers over one input as one product.

    The weights are copied when the run starts. Layers that compute more than a product (with
    quantization noise, or hooks that change their output) are called one by one.
    """

    def __init__(self, layers: Sequence[Any]) -> None:
        self._layers = joined(layers)
        self._weight: Optional[Tensor] = None
        self._bias: Optional[Tensor] = None
        with_bias = {getattr(layer, "bias", None) is not None for layer in layers}
        if all(is_product(layer) for layer in layers) and len(with_bias) == 1:
            self._weight = torch.cat([layer.weight for layer in layers])
            if with_bias == {True}:
                self._bias = torch.cat([layer.bias for layer in layers])

    def hold(self, store: Store, name: str) -> None:
        """Moves the copies of the weights to fixed addresses."""
        if self._weight is not None:
            self._weight = store.put(f"{name} weight", self._weight)
        if self._bias is not None:
            self._bias = store.put(f"{name} bias", self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        """(rows, E) -> (rows, sum of the layers' widths)."""
        if self._weight is None:
            parts = [layer(x) for layer in self._layers]
            return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return linear(x, self._weight, self._bias)


def is_product(layer: Any) -> bool:
    """Whether a linear layer computes x W^T + b from its own ``weight`` and ``bias``."""
    changed = layer._forward_hooks or (layer.training and layer._forward_pre_hooks)
    return isinstance(layer, nn.Linear) and not changed and not hasattr(layer, "parametrizations")


def is_method(method: Any, function: Any) -> bool:
    """Whether a bound method is this function, neither overridden nor replaced."""
    return getattr(method, "__func__", None) is function


class LayerCache:
    """One attention module's part of a run: its projections, and its layer of the ``cache``."""

    def __init__(self, cache: Any, layer: int, module: Any) -> None:
        self._cache, self._layer, self._module = cache, layer, module
        inputs = ("q", "k", "v") if module.self_attention else ("q",)
        self.project = Projection([getattr(module, f"{name}_proj") for name in inputs])

    def attend(self, query: Tensor, call: AttentionCall) -> Output:
        """``query`` (rows, E), one position -> (rows, H, 1, D), before the output projection, and
        in cross-attention with ``need_weights`` the weights (rows, H, 1, S).
        """
        positions, where = call.positions, (self._layer, self._module)
        heads = self.project(query).unflatten(
            1, (-1, self._module.num_heads, self._module.head_dim)
        )
        if not self._module.self_attention:
            q = heads.squeeze(1)  # (rows, H, D)
            result: Output = self._cache.attend_source(*where, q, positions, call.need_weights)
            return result
        q, k, v = heads.unbind(1)  # (rows, H, D)
        k, v = positions.keys(k.unsqueeze(2), None), positions.values(v.unsqueeze(2), None)
        result = self._cache.attend(*where, q, k.squeeze(2), v.squeeze(2), positions)
        return result


class Block:
    """The terms of an encoding for a block of positions, for the layers of one kind of attention.

    ``keys``: their positions, or None in self-attention, where every step adds one.
    """

    def __init__(
        self,
        token_positions: TokenPositions,
        positions: Optional[AttentionPositions],
        layers: int,
        keys: Optional[PositionRange] = None,
    ) -> None:
        self._token_positions, self._positions, self._keys = token_positions, positions, keys
        self._parts: Sequence[PositionTerms] = [NO_TERMS] * layers
        self._range = range(0)

    def at(self, query: int) -> List[PositionTerms]:
        """For each layer, the part of the target's token ``query`` as a query.

        Raises UserError for a token beyond the tables.
        """
        if self._positions is None:
            return list(self._parts)
        if query not in self._range:
            self._compute(self._positions, query)
        row = query - self._range.start
        keys = query + 1 if self._keys is None else num_positions(self._keys)
        return one_step(self._parts, row, keys)

    def _compute(self, positions: AttentionPositions, query: int) -> None:
        tokens, longest = self._token_positions, self._token_positions.longest
        if positions.refuses:
            longest = min(longest, positions.shape.max_queries)
        start = query - query % BLOCK
        # The query itself stays in: the tables refuse one that is beyond them.
        stop = max(min(start + BLOCK, longest), query + 1)
        keys = tokens.at(0, stop) if self._keys is None else self._keys
        self._parts = positions.for_layers(tokens.at(start, stop), keys)
        self._range = range(start, stop)


def one_step(parts: Sequence[PositionTerms], row: Row, keys: int) -> List[PositionTerms]:
    """The part of query ``row`` over the first ``keys`` keys, of each layer."""
    steps = {id(part): part.step(row, keys) for part in parts}
    return [steps[id(part)] for part in parts]


def source_keys(
    modules: Sequence[Any],
    parts: Sequence[PositionTerms],
    source: Tensor,
    key_padding: Optional[Tensor],
) -> Iterator[Tuple[Tensor, Tensor]]:
    """Keys (B', H, S, D_k) and values (B', H, S, D) of encoder output ``source`` (S, B', E'), for
    the cross-attention ``modules`` of all layers.
    """
    for module, positions in zip(modules, parts, strict=True):
        k = positions.keys(module.split(module.k_proj(source)), key_padding)
        yield k, positions.values(module.split(module.v_proj(source)), key_padding)


def cache_for(
    like: Tensor, sentences: int, group: int, modules: Sequence[Any]
) -> Union[KernelCache, PrefixCache]:
    """The faster one for tensors such as ``like`` and the attention ``modules`` of a layer."""
    if kernels.serve(like) and not any(m is not None and m.dropout_p for m in modules):
        return KernelCache(sentences, group)
    return PrefixCache(sentences, group, like.device)


class DecodingRun:
    """The state of one run: ``length`` tokens of ``rows`` hypotheses have been read.

    Args:
        source: encoder output (S, B', E'), or None; not read in a decoder without cross-attention.
        key_padding: (B', S) of the source, or None.
        keys: positions of the source.
        rows: hypotheses, in runs of ``rows / B'`` for each sentence.
    """

    def __init__(
        self,
        decoder: Any,
        source: Optional[Tensor],
        key_padding: Optional[Tensor],
        keys: PositionRange,
        rows: int,
    ) -> None:
        self.length = 0
        layers = list(decoder.layers.children())
        tokens = self._tokens = decoder.token_positions
        self._own_block = Block(tokens, decoder.self_attn_positions, len(layers))
        self._cross_block = Block(tokens, decoder.encoder_attn_positions, len(layers), keys)
        own, cross = (
            [getattr(layer, n) for layer in layers] for n in ("self_attn", "encoder_attn")
        )
        crosses = source is not None and any(module is not None for module in cross)
        like = next(layers[0].parameters()) if source is None else source
        sentences = rows if source is None or not crosses else source.size(1)
        self.cache = cache_for(like, sentences, rows // sentences, (own[0], cross[0]))
        self._own_caches = [LayerCache(self.cache, n, module) for n, module in enumerate(own)]
        self._cross_caches: List[LayerCache] = []
        if source is not None and crosses:
            self._cross_caches = [
                LayerCache(self.cache, n, module) for n, module in enumerate(cross)
            ]
            for k, v in source_keys(cross, self._cross_block.at(0), source, key_padding):
                self.cache.add_source(k, v)
            self.cache.mask_source(key_padding)

    @property
    def next_position(self) -> PositionRange:
        """Position of the token that is read next. Raises UserError where there is none."""
        return self._tokens.at(self.length, self.length + 1)

    @property
    def rows(self) -> int:
        """Hypotheses of all sentences."""
        return self.cache.sentences * self.cache.group

    def calls(self, need_weights: int = -1) -> List[DecoderCall]:
        """A call for each layer, to read the next token of every hypothesis.

        ``need_weights``: the layer that also returns its cross-attention weights. Raises UserError
        for a position beyond the tables.
        """
        own = self._own_block.at(self.length)
        self.cache.open(self.length)
        cross: List[Optional[AttentionCall]] = [None] * len(own)
        if self._cross_caches:
            parts = zip(self._cross_block.at(self.length), self._cross_caches, strict=True)
            cross = [
                AttentionCall(part, cache=cache, need_weights=number == need_weights)
                for number, (part, cache) in enumerate(parts)
            ]
        return [
            DecoderCall(AttentionCall(part, cache=cache), other)
            for part, cache, other in zip(own, self._own_caches, cross, strict=True)
        ]

    def move_rows(self, order: Tensor) -> None:
        """Hypothesis r becomes what ``order[r]`` was; their number may change."""
        group, sentences = regroup(order, self.rows, self.cache.group)
        self.cache.move(order, sentences, group)

    def move(self, order: Tensor, sentences: Optional[Tensor]) -> None:
        """As :meth:`move_rows`; sentence b becomes ``sentences[b]``, or where None all stay."""
        count = self.cache.sentences if sentences is None else sentences.numel()
        self.cache.move(order, sentences, order.numel() // count)
