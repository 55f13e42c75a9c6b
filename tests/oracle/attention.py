"""Attention as loops: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .encodings import Encoding, dot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Projections:
    """Weights (out, in) and biases (out,) of one attention module."""

    query: tuple[Array, Array]
    key: tuple[Array, Array]
    value: tuple[Array, Array]
    out: tuple[Array, Array]


def project(vector: Sequence[float], weights: tuple[Array, Array]) -> list[float]:
    """W x + b."""
    rows, biases = weights[0].tolist(), weights[1].tolist()
    return [bias + dot(row, vector) for row, bias in zip(rows, biases, strict=True)]


def softmax(logits: Sequence[float]) -> list[float]:
    """Shares that add up to 1; -inf gets none."""
    highest = max(logits)
    powers = [math.exp(logit - highest) for logit in logits]
    total = math.fsum(powers)
    return [power / total for power in powers]


def attend(
    q: Array, k: Array, v: Array, scale: float, bias: Callable[[int, int, int, int], float]
) -> tuple[Array, Array]:
    """Attention of one head at a time: ``q`` (B, H, T, D), ``k`` and ``v`` (B, H, S, D).

    Args:
        scale: factor of q . k.
        bias: (b, h, i, j) -> what is added to the scaled logit, -inf where i may not see j.

    Returns:
        The output (B, H, T, D) and the attention weights (B, H, T, S).
    """
    batch, heads, queries, _ = q.shape
    keys, width = v.shape[2:]
    out = np.zeros((batch, heads, queries, width))
    shares = np.zeros((batch, heads, queries, keys))
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                logits = [
                    scale * dot(q[b, h, i].tolist(), k[b, h, j].tolist()) + bias(b, h, i, j)
                    for j in range(keys)
                ]
                for j, share in enumerate(softmax(logits)):
                    shares[b, h, i, j] = share
                    for c in range(width):
                        out[b, h, i, c] += share * float(v[b, h, j, c])
    return out, shares


def attention(
    query: Array,
    source: Array,
    weights: Projections,
    *,
    heads: int,
    scale: float,
    encoding: Encoding,
    visible: Callable[[int, int, int], bool],
    more: Callable[[int, int, int, int], float] = lambda b, h, i, j: 0.0,
) -> tuple[Array, Array]:
    """Multi-head attention of ``query`` (T, B, E) over ``source`` (S, B, E').

    Args:
        scale: factor of q . k.
        visible: (b, i, j) -> whether query i of sentence b may look at key j.
        more: (b, h, i, j) -> what else is added to the logit.

    Returns:
        The output (T, B, E) and the attention weights (B, H, T, S), or (B, H, T, k) where the
        encoding mixes S keys to k.
    """
    q = project_heads(query, weights.query, heads)
    k = project_heads(source, weights.key, heads)
    v = project_heads(source, weights.value, heads)
    batch, _, queries, size = q.shape
    out = np.zeros((queries, batch, heads * size))
    shares = np.zeros((batch, heads, queries, encoding.mixed_to or len(source)))
    for b in range(batch):
        for i in range(queries):
            joined: list[float] = []
            seen = [j for j in range(len(source)) if visible(b, i, j)]
            for h in range(heads):
                by_key, vector = one_query(
                    encoding,
                    (h, i),
                    q[b, h, i].tolist(),
                    {j: k[b, h, j].tolist() for j in seen},
                    {j: v[b, h, j].tolist() for j in seen},
                    scale,
                    {j: more(b, h, i, j) for j in seen},
                )
                for j, share in by_key.items():
                    shares[b, h, i, j] = share
                joined += vector
            out[i, b] = project(joined, weights.out)
    return out, shares


def one_query(
    encoding: Encoding,
    place: tuple[int, int],
    q: list[float],
    keys: dict[int, list[float]],
    values: dict[int, list[float]],
    scale: float,
    more: dict[int, float],
) -> tuple[dict[int, float], list[float]]:
    """What query ``place`` = (h, i) gives each key that it may see, and what it gets: (D,)."""
    h, i = place
    if encoding.mixed_to:
        keys, values = encoding.mixed("of_keys", h, keys), encoding.mixed("of_values", h, values)
    turned = encoding.query(h, i, q)
    logits = [
        scale * encoding.product(h, i, j, turned, k) + encoding.logit(h, i, j) + more.get(j, 0.0)
        for j, k in keys.items()
    ]
    by_key = dict(zip(keys, softmax(logits), strict=True))
    out = [0.0] * len(q)
    for j, share in by_key.items():
        for c, number in enumerate(encoding.value(h, i, j, values[j])):
            out[c] += share * number
    return by_key, out


def project_heads(x: Array, weights: tuple[Array, Array], heads: int) -> Array:
    """``x`` (T, B, E') -> (B, H, T, D): head h has columns h D .. (h + 1) D - 1 of W x + b."""
    length, batch, _ = x.shape
    size = len(weights[1]) // heads
    result = np.zeros((batch, heads, length, size))
    for b in range(batch):
        for i in range(length):
            columns = project(x[i, b].tolist(), weights)
            for h in range(heads):
                result[b, h, i] = columns[h * size : (h + 1) * size]
    return result
