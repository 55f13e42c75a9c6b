"""Slow reference: the equations, written as loops over single numbers.

Nothing of diet_mt is imported, and no tensor library computes: every sum is a Python ``for``. What
goes in are raw weights as arrays. Letters: b sentence, h head, i query, j key, c column.

Sources: scores, Chen et al. 2021 (arXiv:2104.08698), equations 1 and 3; attention and the
sinusoids, Vaswani et al. 2017 (arXiv:1706.03762), sections 3.2 and 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Tables = Mapping[str, Array]


@dataclass(frozen=True)
class Place:
    """One logit: query ``i`` and key ``j`` of head ``h`` in layer ``layer``.

    ``keys``: n_S, the number of positions that the tables provide for keys.
    """

    layer: int
    h: int
    i: int
    j: int
    keys: int


def of_place(tables: Tables, name: str, sharing: str | None, place: Place) -> Array:
    """The table called ``name`` of one layer and head (paper, section 4.4)."""
    if sharing == "layer-wise":
        return tables[f"shared.{name}"][place.h]
    by_head = tables[f"layers.{place.layer}.{name}"]
    return by_head[0] if sharing == "head-wise" else by_head[place.h]


def no_term(tables: Tables, sharing: str | None, place: Place) -> float:
    """Nothing is added to the logits."""
    assert not tables
    return 0.0


def diet_rel(tables: Tables, sharing: str | None, place: Place) -> float:
    """R[i - j]. Offsets run from -(n_S - 1), in column 0, to n_T - 1."""
    by_offset = of_place(tables, "by_offset", sharing, place)
    return float(by_offset[(place.i - place.j) + (place.keys - 1)])


def diet_abs(tables: Tables, sharing: str | None, place: Place) -> float:
    """(P_Q P_K^T)[i, j]."""
    of_query = of_place(tables, "query", sharing, place)[place.i]
    of_key = of_place(tables, "key", sharing, place)[place.j]
    total = 0.0
    for a, b in zip(of_query, of_key, strict=True):
        total += float(a) * float(b)
    return total


# Added to the logit of a place, unscaled, by encoding.
TERMS: dict[str, Callable[[Tables, str | None, Place], float]] = {
    "none": no_term,
    "sinusoidal": no_term,
    "learned": no_term,
    "diet-abs": diet_abs,
    "diet-rel": diet_rel,
}


def no_input(tables: Tables, position: int, c: int, width: int) -> float:
    """Nothing is added to the embeddings."""
    assert not tables
    return 0.0


def sinusoid(tables: Tables, position: int, c: int, width: int) -> float:
    """Sines in the first half of the columns, cosines in the second.

    Wavelengths from 2 pi to 10000 * 2 pi, both included, as in Tensor2Tensor.
    """
    half = width // 2
    wave = c if c < half else c - half
    angle = position / 10000.0 ** (wave / (half - 1))
    return math.sin(angle) if c < half else math.cos(angle)


def learned_row(tables: Tables, position: int, c: int, width: int) -> float:
    """P[position, c]."""
    return float(tables["weight"][position][c])


# Added to column c of the token embedding at a position, by encoding.
INPUTS: dict[str, Callable[[Tables, int, int, int], float]] = {
    "none": no_input,
    "sinusoidal": sinusoid,
    "learned": learned_row,
    "diet-abs": no_input,
    "diet-rel": no_input,
}


@dataclass(frozen=True)
class Projections:
    """Weights (out, in) and biases (out,) of one attention module."""

    query: tuple[Array, Array]
    key: tuple[Array, Array]
    value: tuple[Array, Array]
    out: tuple[Array, Array]


def project(vector: Sequence[float], weights: tuple[Array, Array]) -> list[float]:
    """W x + b."""
    result = []
    for row, bias in zip(weights[0].tolist(), weights[1].tolist(), strict=True):
        total = bias
        for w, x in zip(row, vector, strict=True):
            total += w * x
        result.append(total)
    return result


def softmax(logits: Sequence[float]) -> list[float]:
    """Shares that add up to 1; -inf gets none."""
    highest = max(logits)
    powers = [math.exp(logit - highest) for logit in logits]
    total = math.fsum(powers)
    return [power / total for power in powers]


def attend(
    q: Array, k: Array, v: Array, scale: float, offset: Callable[[int, int, int, int], float]
) -> tuple[Array, Array]:
    """Attention of one head at a time: ``q`` (B, H, T, D), ``k`` and ``v`` (B, H, S, D).

    Args:
        scale: factor of q . k.
        offset: (b, h, i, j) -> what is added to the scaled logit, -inf where i may not see j.

    Returns:
        The output (B, H, T, D) and the attention weights (B, H, T, S).
    """
    batch, heads, queries, size = q.shape
    keys = k.shape[2]
    out = np.zeros_like(q)
    shares = np.zeros((batch, heads, queries, keys))
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                logits = []
                for j in range(keys):
                    dot = 0.0
                    for c in range(size):
                        dot += float(q[b, h, i, c]) * float(k[b, h, j, c])
                    logits.append(scale * dot + offset(b, h, i, j))
                for j, share in enumerate(softmax(logits)):
                    shares[b, h, i, j] = share
                    for c in range(size):
                        out[b, h, i, c] += share * float(v[b, h, j, c])
    return out, shares


def attention(
    query: Array,
    source: Array,
    weights: Projections,
    *,
    heads: int,
    scale: float,
    term: Callable[[int, int, int], float],
    visible: Callable[[int, int, int], bool],
) -> tuple[Array, Array]:
    """Multi-head attention of ``query`` (T, B, E) over ``source`` (S, B, E').

    Args:
        scale: factor of q . k.
        term: (h, i, j) -> what is added to the scaled logit.
        visible: (b, i, j) -> whether query i of sentence b may look at key j.

    Returns:
        The output (T, B, E) and the attention weights (B, H, T, S).
    """

    def offset(b: int, h: int, i: int, j: int) -> float:
        return term(h, i, j) if visible(b, i, j) else -math.inf

    q = project_heads(query, weights.query, heads)
    k = project_heads(source, weights.key, heads)
    v = project_heads(source, weights.value, heads)
    by_head, shares = attend(q, k, v, scale, offset)
    batch, _, queries, size = by_head.shape
    out = np.zeros((queries, batch, heads * size))
    for b in range(batch):
        for i in range(queries):
            joined: list[float] = []
            for h in range(heads):
                joined += by_head[b, h, i].tolist()
            out[i, b] = project(joined, weights.out)
    return out, shares


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
