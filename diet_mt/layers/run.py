"""One run of step-by-step decoding: everything that it keeps from step to step.

Keys and values of the target grow in memory that is allocated ahead; those of the source are made
once per sentence, however many beams it has. What positions say is computed for a block of
positions at a time and then sliced. Projections are fused into one product. All of it lives in the
run and ends with it, so whatever happens to the model afterwards (an update, another precision or
device), the next run starts from what is true then.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from ..positions import AttentionPositions, LayerPositions
from ..positions.layer import NOTHING
from ..products import linear
from .beams import regroup
from .call import AttentionCall, DecoderCall

# Positions for which a run computes at once what an encoding says, and by which its memory grows.
BLOCK = 32


class Projection:
    """Several linear layers over one input as one product.

    The weights are copied when the run starts. Layers that compute more than a product (quantized
    ones, or with hooks that change what they return) are called one by one.
    """

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        self._layers = list(layers)
        self._weight: Optional[Tensor] = None
        self._bias: Optional[Tensor] = None
        if all(is_product(layer) for layer in layers):
            self._weight = torch.cat([layer.weight for layer in layers])
            biases = [layer.bias for layer in layers]
            if all(bias is not None for bias in biases):
                self._bias = torch.cat(biases)
            elif any(bias is not None for bias in biases):
                self._weight = None

    def __call__(self, x: Tensor) -> Tensor:
        """(..., E) -> (..., sum of the layers' widths)."""
        if self._weight is None:
            return torch.cat([layer(x) for layer in self._layers], dim=-1)
        return linear(x, self._weight, self._bias)


def is_product(layer: nn.Module) -> bool:
    """Whether a linear layer computes x W^T + b from its own ``weight`` and ``bias``."""
    changed = layer._forward_hooks or (layer.training and layer._forward_pre_hooks)
    return isinstance(layer, nn.Linear) and not changed and not hasattr(layer, "parametrizations")


class Block:
    """What an encoding says about a block of positions, for the layers of one kind of attention."""

    def __init__(self, positions: Optional[AttentionPositions], layers: int, grows: bool) -> None:
        self._positions = positions
        self._grows = grows  # every step adds a key
        self._found: Sequence[LayerPositions] = [NOTHING] * layers
        self._start, self._stop, self._keys = 0, 0, 0

    def at(self, query: int, keys: int) -> List[LayerPositions]:
        """For each layer, the part of the query at position ``query`` over ``keys`` keys.

        Raises UserError for a query beyond the tables.
        """
        if self._positions is None:
            return list(self._found)
        if not self._start <= query < self._stop or keys > self._keys:
            self._compute(self._positions, query, keys)
        row = query - self._start
        steps = {id(layer): layer.step(row, keys) for layer in self._found}
        return [steps[id(layer)] for layer in self._found]

    def _compute(self, positions: AttentionPositions, query: int, keys: int) -> None:
        start = query - query % BLOCK
        stop = start + BLOCK
        if positions.limited:
            # The query itself stays in: that it lies beyond the tables is for them to say.
            stop = max(min(stop, positions.shape.max_queries), query + 1)
        self._start, self._stop, self._keys = start, stop, stop if self._grows else keys
        self._found = positions.for_layers(start, stop - start, self._keys)


class DecodingRun:
    """The state of one run: ``length`` tokens of ``rows`` hypotheses have been read.

    Args:
        layers: the decoder's layers, in their order.
        self_positions, cross_positions: what the encoding brings to them, or None.
        source: encoder output (S, B', E'), or None; not read in a decoder without cross-attention.
        mask: (B', S), keys of the source that nobody may look at, or None.
        rows: hypotheses, in runs of ``rows / B'`` for each sentence.
    """

    def __init__(
        self,
        layers: Sequence[Any],
        self_positions: Optional[AttentionPositions],
        cross_positions: Optional[AttentionPositions],
        source: Optional[Tensor],
        mask: Optional[Tensor],
        rows: int,
    ) -> None:
        self.length = 0
        self.rows = rows
        self.mask = mask
        self.kept: List[Tensor] = []  # keys and values of each layer, (rows, H, room, D)
        self._self_block = Block(self_positions, len(layers), grows=True)
        self._cross_block = Block(cross_positions, len(layers), grows=False)
        self._self_caches = [SelfCache(self, n, each.self_attn) for n, each in enumerate(layers)]
        self.sources: Optional[Tensor] = None  # (2L, B', H, S, D)
        self._cross_caches: List[SourceCache] = []
        modules = [layer.encoder_attn for layer in layers]
        if source is not None and any(module is not None for module in modules):
            self._cross_caches = [SourceCache(self, n, each) for n, each in enumerate(modules)]
            self.sources = self._project_source(modules, source)

    def _project_source(self, modules: Sequence[Any], source: Tensor) -> Tensor:
        found = self._cross_block.at(0, source.size(0))
        pairs = []
        for module, positions in zip(modules, found, strict=True):
            k = positions.keys(module.split(module.k_proj(source)), self.mask)
            v = positions.values(module.split(module.v_proj(source)), self.mask)
            pairs += [k, v]
        return torch.stack(pairs)

    @property
    def group(self) -> int:
        """Hypotheses of one sentence."""
        return self.rows if self.sources is None else self.rows // self.sources.size(1)

    def calls(self, need_weights: int = -1) -> List[DecoderCall]:
        """What each layer needs to read the next token of every hypothesis.

        ``need_weights``: the layer whose cross-attention weights are wanted. Raises UserError for a
        position beyond the tables.
        """
        own = self._self_block.at(self.length, self.length + 1)
        if self.sources is None:
            pairs = zip(own, self._self_caches, strict=True)
            return [DecoderCall(AttentionCall(part, cache=cache)) for part, cache in pairs]
        cross = self._cross_block.at(self.length, self.sources.size(3))
        calls = []
        for number, part in enumerate(own):
            source = AttentionCall(
                cross[number],
                self.mask,
                cache=self._cross_caches[number],
                need_weights=number == need_weights,
            )
            calls.append(DecoderCall(AttentionCall(part, cache=self._self_caches[number]), source))
        return calls

    def room(self, like: Tensor) -> None:
        """Sees to it that ``kept`` has room for the next token; ``like`` (rows, H, D)."""
        if self.kept and self.length < self.kept[0].size(2):
            return
        more = (self.rows, like.size(1), BLOCK, like.size(2))
        if self.kept:
            self.kept = [torch.cat([each, each.new_empty(more)], dim=2) for each in self.kept]
        else:
            self.kept = [like.new_empty(more) for _ in range(2 * len(self._self_caches))]

    def reorder(self, order: Tensor) -> None:
        """Hypothesis r becomes what hypothesis ``order[r]`` was; there may be more or fewer then."""
        _, sentences = regroup(order, self.rows, self.group)
        self.move(order, sentences)

    def move(self, order: Tensor, sentences: Optional[Tensor]) -> None:
        """As :meth:`reorder`, where it is known that sentence b becomes ``sentences[b]``, or where
        None that all stay.

        Only hypotheses that change their row are copied.
        """
        rows = order.numel()
        if sentences is not None and self.sources is not None:
            self.sources = self.sources.index_select(1, sentences)
            self.mask = None if self.mask is None else self.mask.index_select(0, sentences)
        if rows > self.rows:
            self.kept = [each.index_select(0, order) for each in self.kept]
        else:
            moved = order.ne(torch.arange(rows, device=order.device)).nonzero().squeeze(1)
            origin = order[moved]
            for each in self.kept if moved.numel() else ():
                used = each[:, :, : self.length]
                used.index_copy_(0, moved, used.index_select(0, origin))
            self.kept = [each[:rows] for each in self.kept]
        self.rows = rows


class SelfCache:
    """The keys and values of one layer's self-attention in ``run``."""

    def __init__(self, run: DecodingRun, number: int, module: Any) -> None:
        self._run, self._number, self._module = run, number, module
        self._fused = Projection([module.q_proj, module.k_proj, module.v_proj])

    def project(self, query: Tensor, positions: LayerPositions) -> Tuple[Tensor, Tensor, Tensor]:
        """See :class:`~diet_mt.layers.call.Cache`."""
        heads, at, run = self._module.num_heads, self._run.length, self._run
        q, k, v = self._fused(query[0]).unflatten(-1, (3, heads, -1)).unbind(1)  # (rows, H, D)
        run.room(k)
        keys, values = run.kept[2 * self._number : 2 * self._number + 2]  # (rows, H, room, D)
        keys[:, :, at] = positions.keys(k.unsqueeze(2), None).squeeze(2)
        values[:, :, at] = positions.values(v.unsqueeze(2), None).squeeze(2)
        return q.unsqueeze(2), keys[:, :, : at + 1], values[:, :, : at + 1]


class SourceCache:
    """The keys and values of one layer's cross-attention in ``run``."""

    def __init__(self, run: DecodingRun, number: int, module: Any) -> None:
        self._run, self._number, self._module = run, number, module

    def project(self, query: Tensor, positions: LayerPositions) -> Tuple[Tensor, Tensor, Tensor]:
        """See :class:`~diet_mt.layers.call.Cache`."""
        sources = self._run.sources
        assert sources is not None
        module = self._module
        k, v = sources[2 * self._number], sources[2 * self._number + 1]
        return module.split(module.q_proj(query)), k, v
