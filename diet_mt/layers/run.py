"""One run of step-by-step decoding: everything that it keeps from step to step.

Keys and values stay in a memory (``memory.py``): those of the target once for all hypotheses that
share them, those of the source once per sentence. What positions say is computed for a block of
positions at a time and then sliced. Projections are fused into one product. All of it lives in the
run and ends with it, so whatever happens to the model afterwards (an update, another precision or
device), the next run starts from what is true then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from ..nn.linear import linear
from ..nn.precision import product
from ..positions import AttentionPositions, LayerPositions, Span, TokenPositions
from ..positions.layer import NOTHING, Row
from ..positions.spans import tokens_in
from .beams import regroup
from .call import AttentionCall, DecoderCall
from .memory import Attends, Memory, memory_for
from .store import Store

# Positions for which a run computes at once what an encoding says.
BLOCK = 32


class Projection:
    """Linear layers over one input as one product.

    The weights are copied when the run starts. Layers that compute more than a product (quantized
    ones, or with hooks that change what they return) are called one by one.
    """

    def __init__(self, layers: Sequence[Any]) -> None:
        self._layers = layers
        self._weight: Optional[Tensor] = None
        self._bias: Optional[Tensor] = None
        with_bias = {getattr(layer, "bias", None) is not None for layer in layers}
        if all(is_product(layer) for layer in layers) and len(with_bias) == 1:
            self._weight = torch.cat([layer.weight for layer in layers])
            if with_bias == {True}:
                self._bias = torch.cat([layer.bias for layer in layers])

    def hold(self, store: Store, name: str) -> None:
        """Puts the copies of the weights where they stay from run to run."""
        if self._weight is not None:
            self._weight = store.put(f"{name} weight", self._weight)
        if self._bias is not None:
            self._bias = store.put(f"{name} bias", self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        """(rows, E) -> (rows, sum of the layers' widths)."""
        if self._weight is None:
            return torch.cat([layer(x) for layer in self._layers], dim=-1)
        return linear(x, self._weight, self._bias)


def is_product(layer: Any) -> bool:
    """Whether a linear layer computes x W^T + b from its own ``weight`` and ``bias``."""
    changed = layer._forward_hooks or (layer.training and layer._forward_pre_hooks)
    return isinstance(layer, nn.Linear) and not changed and not hasattr(layer, "parametrizations")


def is_method(method: Any, function: Any) -> bool:
    """Whether a bound method is this function, neither overridden nor replaced."""
    return getattr(method, "__func__", None) is function


class Block:
    """What an encoding says about a block of positions, for the layers of one kind of attention.

    ``keys``: their positions, or None in self-attention, where every step adds one.
    """

    def __init__(
        self,
        token_positions: TokenPositions,
        positions: Optional[AttentionPositions],
        layers: int,
        keys: Optional[Span] = None,
    ) -> None:
        self._token_positions, self._positions, self._keys = token_positions, positions, keys
        self._found: Sequence[LayerPositions] = [NOTHING] * layers
        self._served = range(0)

    def at(self, query: int) -> List[LayerPositions]:
        """For each layer, the part of the target's token ``query`` as a query.

        Raises UserError for a token beyond the tables.
        """
        if self._positions is None:
            return list(self._found)
        if query not in self._served:
            self._compute(self._positions, query)
        row = query - self._served.start
        keys = query + 1 if self._keys is None else tokens_in(self._keys)
        return one_step(self._found, row, keys)

    def _compute(self, positions: AttentionPositions, query: int) -> None:
        tokens, longest = self._token_positions, self._token_positions.longest
        if positions.refuses:
            longest = min(longest, positions.shape.max_queries)
        start = query - query % BLOCK
        # The query itself stays in: that it lies beyond the tables is for them to say.
        stop = max(min(start + BLOCK, longest), query + 1)
        keys = tokens.at(0, stop) if self._keys is None else self._keys
        self._found = positions.for_layers(tokens.at(start, stop), keys)
        self._served = range(start, stop)


def one_step(parts: Sequence[LayerPositions], row: Row, keys: int) -> List[LayerPositions]:
    """Of each layer, the part of query ``row`` over the first ``keys`` keys."""
    steps = {id(part): _with_factors(part.step(row, keys)) for part in parts}
    return [steps[id(part)] for part in parts]


def _with_factors(positions: LayerPositions) -> LayerPositions:
    """``positions`` with the product of their factors in their bias, which is all that a memory
    adds.
    """
    factors = positions.factors()
    if factors is None:
        return positions
    more = product(*factors)  # (H|1, 1, S)
    return replace(positions, bias=more if positions.bias is None else positions.bias + more)


class DecodingRun:
    """The state of one run: ``length`` tokens of ``rows`` hypotheses have been read.

    Args:
        layers: the decoder's layers, in their order.
        token_positions: where the target's tokens stand.
        self_positions, cross_positions: what the encoding brings to them, or None.
        source: encoder output (S, B', E'), or None; not read in a decoder without cross-attention.
        mask: (B', S), keys of the source that nobody may look at, or None.
        keys: positions of the source.
        rows: hypotheses, in runs of ``rows / B'`` for each sentence.
    """

    def __init__(
        self,
        layers: Sequence[Any],
        token_positions: TokenPositions,
        self_positions: Optional[AttentionPositions],
        cross_positions: Optional[AttentionPositions],
        source: Optional[Tensor],
        mask: Optional[Tensor],
        keys: Span,
        rows: int,
    ) -> None:
        self.length = 0
        self._token_positions = token_positions
        self._self_block = Block(token_positions, self_positions, len(layers))
        self._cross_block = Block(token_positions, cross_positions, len(layers), keys)
        modules = [layer.encoder_attn for layer in layers]
        crosses = source is not None and any(module is not None for module in modules)
        like = next(layers[0].parameters()) if source is None else source
        sentences = rows if source is None or not crosses else source.size(1)
        # One for all layers.
        own, other = layers[0].self_attn, modules[0]
        scale = own.scaling, getattr(other, "scaling", 1.0)
        dropout = own.dropout_module, getattr(other, "dropout_module", None)
        self.memory: Memory = memory_for(
            like, sentences, rows // sentences, len(layers), scale, dropout
        )
        self._self_caches = [
            SelfCache(self.memory, n, each.self_attn) for n, each in enumerate(layers)
        ]
        self._cross_caches: List[SourceCache] = []
        if source is not None and crosses:
            self._cross_caches = [
                SourceCache(self.memory, n, each) for n, each in enumerate(modules)
            ]
            found = self._cross_block.at(0)
            for module, positions in zip(modules, found, strict=True):
                k = positions.keys(module.split(module.k_proj(source)), mask)  # (B', H, S, R)
                v = positions.values(module.split(module.v_proj(source)), mask)
                self.memory.add_source(k, v)
            self.memory.close(mask)

    @property
    def next_position(self) -> Span:
        """Of the token that is read next. Raises UserError where there is none."""
        return self._token_positions.at(self.length, self.length + 1)

    @property
    def rows(self) -> int:
        """Hypotheses of all sentences."""
        return self.memory.sentences * self.memory.group

    def calls(self, need_weights: int = -1) -> List[DecoderCall]:
        """What each layer needs to read the next token of every hypothesis.

        ``need_weights``: the layer whose cross-attention weights are wanted. Raises UserError for a
        position beyond the tables.
        """
        own = self._self_block.at(self.length)
        self.memory.open(self.length)
        if not self._cross_caches:
            pairs = zip(own, self._self_caches, strict=True)
            return [DecoderCall(AttentionCall(part, cache=cache)) for part, cache in pairs]
        cross = self._cross_block.at(self.length)
        calls = []
        for number, part in enumerate(own):
            source = AttentionCall(
                cross[number],
                cache=self._cross_caches[number],
                need_weights=number == need_weights,
            )
            calls.append(DecoderCall(AttentionCall(part, cache=self._self_caches[number]), source))
        return calls

    def move_rows(self, order: Tensor) -> None:
        """Hypothesis r becomes what ``order[r]`` was; there may be more or fewer of them then."""
        group, sentences = regroup(order, self.rows, self.memory.group)
        self.memory.move(order, sentences, group)

    def move(self, order: Tensor, sentences: Optional[Tensor]) -> None:
        """As :meth:`move_rows`, where it is known that sentence b becomes ``sentences[b]``, or
        where None that all stay.
        """
        count = self.memory.sentences if sentences is None else sentences.numel()
        self.memory.move(order, sentences, order.numel() // count)


class SelfCache:
    """What one layer's self-attention has in ``memory``."""

    def __init__(self, memory: Attends, number: int, module: Any) -> None:
        self._memory, self._number, self._heads = memory, number, module.num_heads
        self.project = Projection([module.q_proj, module.k_proj, module.v_proj])

    def attend(self, query: Tensor, call: AttentionCall) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`~diet_mt.layers.call.Cache`; without weights."""
        positions = call.positions
        q, k, v = self.project(query).unflatten(1, (3, self._heads, -1)).unbind(1)  # (rows, H, D)
        k, v = positions.keys(k.unsqueeze(2), None), positions.values(v.unsqueeze(2), None)
        new = k.squeeze(2), v.squeeze(2)
        return self._memory.attend(self._number, q, *new, positions)


class SourceCache:
    """What one layer's cross-attention has in ``memory``."""

    def __init__(self, memory: Attends, number: int, module: Any) -> None:
        self._memory, self._number, self._heads = memory, number, module.num_heads
        self.project = Projection([module.q_proj])

    def attend(self, query: Tensor, call: AttentionCall) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`~diet_mt.layers.call.Cache`."""
        q = self.project(query).unflatten(1, (self._heads, -1))  # (rows, H, D)
        return self._memory.attend_source(self._number, q, call.positions, call.need_weights)
