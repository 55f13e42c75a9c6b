"""Theorem 1: how large the rank of one head's logits can be (Chen et al. 2021, section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ...blocks import Block, Grid, Heading, Note
from ...positions import KINDS
from ..measures import RANK_THRESHOLD, ranks
from ..observed import System, fitting, joined, observe
from .draws import Sizes, normal


def theorem_1(sizes: Sizes, generator: torch.Generator) -> Iterator[Block]:
    """The rank of one head's logits, with positions at the input and inside attention."""
    n, d, d_h, d_p = sizes.n, sizes.d, sizes.d_h, sizes.d_p

    draw = normal(generator)
    found: dict[str, list[int]] = {}
    for _ in range(sizes.draws):
        x, w_q, w_k = draw(n, d), draw(d, d_h), draw(d, d_h)
        for name, matrix in logits_of(x, draw(n, d), draw(n, d_p), draw(n, d_p), w_q, w_k).items():
            found.setdefault(name, []).append(int(ranks(matrix).rank))
    found["the paper's own choice of X, P^, W_Q, W_K"] = [int(ranks(chosen(sizes)).rank)]
    bounds = [d_h, min(n, d_h + d_p), min(n, d_h + d_p), n, min(n, d_h + d_p)]
    pairs = zip(found.items(), bounds, strict=True)
    rows = [[name, str(bound), _range(values)] for (name, values), bound in pairs]
    yield Heading("Theorem 1: rank of the logits of one head")
    yield Note(
        f"n = {n}, d = {d}, d_h = {d_h}, d_p = {d_p}; {sizes.draws} normal draws; singular values "
        f"above {RANK_THRESHOLD:g} of the largest are counted."
    )
    yield Grid(["logits", "at most", "reached"], rows)


def logits_of(
    x: Tensor, p: Tensor, p_q: Tensor, p_k: Tensor, w_q: Tensor, w_k: Tensor
) -> dict[str, Tensor]:
    """Words ``x`` and positions ``p`` (n, d), ``p_q`` and ``p_k`` (n, d_p), ``w_q`` and ``w_k`` (d,
    d_h) -> logits (n, n) by how the positions enter.
    """
    words = x @ w_q @ (x @ w_k).T
    n = len(x)
    by_distance = torch.arange(n)[:, None] - torch.arange(n) + n - 1
    line = torch.cat([p_q, p_k]).flatten()[: 2 * n - 1]
    return {
        "(X+P) W_Q W_K^T (X+P)^T, positions at the input": (x + p) @ w_q @ ((x + p) @ w_k).T,
        "X W_Q W_K^T X^T + P^ P^^T, the theorem's": words + p_q @ p_q.T,
        "X W_Q W_K^T X^T + P_Q P_K^T, DIET-ABS": words + p_q @ p_k.T,
        "X W_Q W_K^T X^T + R[i-j], DIET-REL": words + line[by_distance],
    }


def chosen(sizes: Sizes) -> Tensor:
    """A_r (n, n) of the paper's proof (appendix B): identities that do not overlap. (P^ is printed
    with zeros in its first columns; it must be the first n - d_p rows for the sizes to fit.)
    """
    n, d, d_h, d_p = sizes.n, sizes.d, sizes.d_h, sizes.d_p
    w = torch.eye(d, d_h, dtype=torch.float64)
    x = torch.eye(n, d, dtype=torch.float64)
    p = torch.cat([torch.zeros(n - d_p, d_p), torch.eye(d_p)]).double()
    return x @ w @ w.T @ x.T + p @ p.T


def ranks_of_checkpoints(systems: Sequence[System], subset: str, tokens: int) -> Iterator[Block]:
    """For each system and kind of attention the rank of its heads over text."""
    rows = []
    columns: dict[int, int] = {}  # in which queries and keys meet, at most, by the size of a head
    size = fitting(systems[0], tokens, "Theorem 1") if systems else 0
    for system in systems:
        seen = observe(system, joined(system, subset, size, 4))
        for kind in KINDS:
            calls = [call for call in seen if call.kind == kind]
            if not calls:
                continue
            whole = torch.cat([ranks(call.logits()).rank.flatten() for call in calls])
            term = torch.cat([ranks(call.positional()).rank.flatten() for call in calls])
            head, own = calls[0].columns, calls[0].module.head_dim
            columns[own] = max(head, columns.get(own, 0))
            sizes = [str(size), str(head), _range(term.tolist())]
            bound = str(min(size, head + int(term.max())))
            rows.append([system.name, kind, *sizes, bound, _range(whole.tolist())])
    if rows:
        if size <= max(columns.values()):
            yield Note(
                f"Matrices of {size} tokens have no rank above the size of a head: here the bound "
                "says nothing."
            )
        yield Note(
            "Over text, all layers and heads; at most: head size and the rank of the term. (A term "
            "that is 0: positions at the input, or rotated into queries and keys.)"
        )
        if any(most > own for own, most in columns.items()):
            yield Note(
                "d_h is the size of queries and keys as they meet, which is more than that of a "
                "head where positions widen them."
            )
        heads = ["system", "attention", "n", "d_h", "rank of the term", "at most", "reached"]
        yield Grid(heads, rows, [False, False, *[True] * 5])


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
