"""How the terms of a stack reach its layers: masks joined in, through fairseq's calling form."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Dict, Optional

from torch import Tensor

from ..attention import causal_offsets
from ..positions import AttentionPositions, Term, Terms

# Positions of which a decoding run computes the terms at once.
BLOCK = 64


class LayerTerms:
    """Terms of all layers of a stack for one kind of attention, with the masks.

    Args:
        name: the attention module of a layer that these are for, such as ``self_attn``.
        terms: what the encoding has to say, or None.
        mask: (B|1, 1, T|1, S), 0 or -inf, or None.
        causal: hide the keys behind each query.
        query_start, query_len: where the queries stand.
        segments: what :class:`~diet_mt.positions.SegmentPositions` computed, or None.
        like: a tensor of the stack's device and precision.
    """

    def __init__(
        self,
        name: str,
        terms: Optional[Terms],
        mask: Optional[Tensor],
        *,
        like: Tensor,
        causal: bool = False,
        query_start: int = 0,
        query_len: int = 1,
        segments: Optional[Dict[str, Tensor]] = None,
    ) -> None:
        self._name = name
        self._terms = Terms() if terms is None else terms
        self._tensors = {**self._terms.tensors, **(segments or {})}
        bias = self._terms.bias
        # With a bias there is a table anyway; without one, kernels that know causality need none.
        if causal and bias is not None:
            future = causal_offsets(query_len, like.device, like.dtype)
            mask = future if mask is None else mask + future
            causal = False
        self._mask = mask
        self._dtype = like.dtype
        self._place = {
            "causal": causal and query_len > 1,
            "query_start": query_start,
            "query_len": query_len,
        }
        self._same_for_all: Optional[Tensor] = None
        if bias is None:
            self._same_for_all = mask
        elif bias.size(0) == 1:
            self._same_for_all = self._joined(bias)

    def _joined(self, bias: Tensor) -> Tensor:
        # Here and not in attention, which would convert what layers share once for each of them.
        bias = bias.to(self._dtype)
        return bias if self._mask is None else bias + self._mask

    def _offsets(self, layer: int) -> Optional[Tensor]:
        bias = self._terms.bias
        if bias is None or self._same_for_all is not None:
            return self._same_for_all
        return self._joined(bias[layer : layer + 1])

    def of(self, layer: int) -> Dict[str, Any]:
        """Keyword arguments for one layer, which makes a term of them again with :func:`unpack`.

        Tensors are arguments of their own: only such are differentiated through under activation
        checkpointing, and a table shared by layers is read once per forward pass, outside of them,
        as DDP and FSDP require.
        """
        given = {"kind": self._terms.kind, "offsets": self._offsets(layer), **self._place}
        for name, stack in self._tensors.items():
            given[name] = stack[0 if stack.size(0) == 1 else layer]
        return {f"{self._name}.{name}": value for name, value in given.items()}


def unpack(name: str, packed: Dict[str, Any]) -> Optional[Term]:
    """The term for the attention module ``name``, from the arguments of :class:`LayerTerms`."""
    if f"{name}.kind" not in packed:
        return None
    kind = packed[f"{name}.kind"]
    return kind(
        **{
            part.name: packed[f"{name}.{part.name}"]
            for part in fields(kind)
            if f"{name}.{part.name}" in packed
        }
    )


class DecodingTerms:
    """The terms of one kind of attention during one run of step-by-step decoding.

    They are computed for ``BLOCK`` positions at a time and then sliced. They live in the run's own
    incremental state, and end with it: whatever happens to the model afterwards, an update, another
    precision or device, a longer sentence, the next run computes its own.
    """

    def __init__(self) -> None:
        self._terms: Optional[Terms] = None
        self._start = self._keys = 0

    def at(self, positions: AttentionPositions, query: int, key_len: int, grows: bool) -> Terms:
        """Terms of the query at position ``query`` over ``key_len`` keys.

        ``grows``: every step adds a key. Raises UserError for a query beyond the tables.
        """
        start = query - query % BLOCK
        if self._terms is None or start != self._start or key_len > self._keys:
            stop = start + BLOCK
            if positions.limited:
                # The query itself stays in: that it lies beyond the tables is for them to say.
                stop = max(min(stop, positions.shape.max_queries), query + 1)
            self._start, self._keys = start, stop if grows else key_len
            self._terms = positions.terms(start, stop - start, self._keys)
        return self._terms.step(query - start, key_len)
