"""State of one run of step-by-step decoding.

A cache (``cache.py``) stores keys and values: of the target once for all hypotheses that share
them, of the source once per sentence. Position terms are computed for a block of positions at a
time and then sliced. Projections of one input are fused into one product. None of this outlives the
run, so the next run reads the model after any change (an update, another precision or device).
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

# Number of positions whose terms a run computes at once.
BLOCK = 32


class Projection:
    """Linear layers over one input as one product.

    The weights are copied when the run starts. Layers that compute more than a product (with
    quantization noise or hooks) are called one by one.
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
        """``x`` (rows, E) -> (rows, sum of the layers' widths)."""
        if self._weight is None:
            parts = [layer(x) for layer in self._layers]
            return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return linear(x, self._weight, self._bias)


def is_product(layer: Any) -> bool:
    """Whether ``layer`` only computes x W^T + b of its parameters, without effective hooks."""
    changed = layer._forward_hooks or (layer.training and layer._forward_pre_hooks)
    return isinstance(layer, nn.Linear) and not changed and not hasattr(layer, "parametrizations")


def is_method(method: Any, function: Any) -> bool:
    """Whether a bound method is ``function``, neither overridden nor replaced."""
    return getattr(method, "__func__", None) is function


class LayerCache:
    """One attention module's part of a run: its projections, and its layer of the ``cache``."""

    def __init__(self, cache: Any, layer: int, module: Any) -> None:
        self._cache, self._layer, self._module = cache, layer, module
        inputs = ("q", "k", "v") if module.self_attention else ("q",)
        self.project = Projection([getattr(module, f"{name}_proj") for name in inputs])

    def attend(self, query: Tensor, call: AttentionCall) -> Output:
        """``query`` (rows, E) at one position -> (rows, H, 1, D) before the output projection, and
        in cross-attention with ``need_weights`` the weights (rows, H, 1, S).
        """
        positions, own = call.positions, (self._layer, self._module)
        heads = self.project(query).unflatten(
            1, (-1, self._module.num_heads, self._module.head_dim)
        )
        if not self._module.self_attention:
            q = heads.squeeze(1)  # (rows, H, D)
            result: Output = self._cache.attend_source(*own, q, positions, call.need_weights)
            return result
        q, k, v = heads.unbind(1)  # (rows, H, D)
        k, v = positions.keys(k.unsqueeze(2), None), positions.values(v.unsqueeze(2), None)
        result = self._cache.attend(*own, q, k.squeeze(2), v.squeeze(2), positions)
        return result


class Block:
    """Position terms of all layers for one kind of attention and a block of queries.

    ``keys``: positions of the keys, or None in self-attention, where each step adds a key.
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
        """Terms of each layer for the target token ``query`` as the only query.

        Raises :class:`UserError` for a token beyond the tables.
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
        # The range always includes the query: beyond the tables, they raise UserError.
        stop = max(min(start + BLOCK, longest), query + 1)
        keys = tokens.at(0, stop) if self._keys is None else self._keys
        self._parts = positions.for_layers(tokens.at(start, stop), keys)
        self._range = range(start, stop)


def one_step(parts: Sequence[PositionTerms], row: Row, keys: int) -> List[PositionTerms]:
    """Terms of each layer for query ``row`` over the first ``keys`` keys."""
    steps = {id(part): part.step(row, keys) for part in parts}
    return [steps[id(part)] for part in parts]


def source_keys(
    modules: Sequence[Any],
    parts: Sequence[PositionTerms],
    source: Tensor,
    key_padding: Optional[Tensor],
) -> Iterator[Tuple[Tensor, Tensor]]:
    """Keys (B', H, S, D_k) and values (B', H, S, D) of encoder output ``source`` (S, B', E'), for
    the cross-attention module of each layer.
    """
    for module, positions in zip(modules, parts, strict=True):
        k = positions.keys(module.split(module.k_proj(source)), key_padding)
        yield k, positions.values(module.split(module.v_proj(source)), key_padding)


def cache_for(
    like: Tensor, sentences: int, group: int, modules: Sequence[Any]
) -> Union[KernelCache, PrefixCache]:
    """The faster cache that supports tensors such as ``like`` and the ``modules`` of a layer."""
    if kernels.serve(like) and not any(m is not None and m.dropout_p for m in modules):
        return KernelCache(sentences, group)
    return PrefixCache(sentences, group, like.device)


class DecodingRun:
    """State of one run, in which each of ``rows`` hypotheses has read ``length`` tokens.

    Args:
        source: encoder output (S, B', E'), or None; not read in a decoder without cross-attention.
        key_padding: (B', S) of the source, or None.
        keys: positions of the source.
        rows: number of hypotheses, ``rows / B'`` consecutive ones per sentence.
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
        """Position of the next token. Raises :class:`UserError` if there is none."""
        return self._tokens.at(self.length, self.length + 1)

    @property
    def rows(self) -> int:
        """Number of hypotheses of all sentences."""
        return self.cache.sentences * self.cache.group

    def calls(self, need_weights: int = -1) -> List[DecoderCall]:
        """A call for each layer, to read the next token of every hypothesis.

        ``need_weights``: index of the layer that also returns its cross-attention weights. Raises
        :class:`UserError` for a position beyond the tables.
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
        """Hypothesis r becomes hypothesis ``order[r]``; ``order``: (new number of rows,)."""
        group, sentences = regroup(order, self.rows, self.cache.group)
        self.cache.move(order, sentences, group)

    def move(self, order: Tensor, sentences: Optional[Tensor]) -> None:
        """As :meth:`move_rows`; sentence b becomes ``sentences[b]``, (new B',); None: all stay."""
        count = self.cache.sentences if sentences is None else sentences.numel()
        self.cache.move(order, sentences, order.numel() // count)
