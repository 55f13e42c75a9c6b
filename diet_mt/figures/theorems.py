"""The theorems of Chen et al. 2021 in numbers: ranks (section 2.3) and gradients (appendix B).

n: number of positions; d: width of the model; d_h: size of a head; d_p: rank of positions. Draws
are standard normal, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..report.blocks import Block, Heading, Note, Table, text
from .rank import ranks

HEADS, DRAWS = 4, 10


def report(seed: int) -> str:
    """Tables of both theorems on random draws, as text."""
    draw = partial(torch.randn, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return text([*theorem_1(draw), *theorem_2(draw)])


def theorem_1(draw: Any) -> Iterator[Block]:
    """Rank of the logits of a head, with positions at the input and inside attention."""
    n, d, d_h, d_p = 96, 128, 32, 48
    by_distance = torch.arange(n)[:, None] - torch.arange(n) + n - 1
    reached: dict[str, list[int]] = {}
    for _ in range(DRAWS):
        x, p, p_q, p_k = draw(n, d), draw(n, d), draw(n, d_p), draw(n, d_p)
        w_q, w_k = draw(d, d_h), draw(d, d_h)
        words = x @ w_q @ (x @ w_k).T  # (n, n)
        line = torch.cat([p_q, p_k]).flatten()[: 2 * n - 1]
        for name, logits in {
            "(X+P) W_Q W_K^T (X+P)^T, positions at the input": (x + p) @ w_q @ ((x + p) @ w_k).T,
            "X W_Q W_K^T X^T + P^ P^^T, the theorem's": words + p_q @ p_q.T,
            "X W_Q W_K^T X^T + P_Q P_K^T, DIET-ABS": words + p_q @ p_k.T,
            "X W_Q W_K^T X^T + R[i-j], DIET-REL": words + line[by_distance],
        }.items():
            reached.setdefault(name, []).append(int(ranks(logits).rank))
    rows = []
    for (name, each), bound in zip(reached.items(), (d_h, d_h + d_p, d_h + d_p, n), strict=True):
        between = " to ".join(map(str, sorted({min(each), max(each)})))
        rows.append([name, str(min(n, bound)), between])
    yield Heading("Theorem 1: rank of the logits of one head")
    yield Note(f"n = {n}, d = {d}, d_h = {d_h}, d_p = {d_p}; {DRAWS} draws.")
    yield Table(["logits", "at most", "reached"], rows)


def theorem_2(draw: Any) -> Iterator[Block]:
    """Gradients of tables at the input, and of tables in each head."""
    n, d, d_h, d_p = 16, 24, 6, 6
    differences, similarities = [], []
    for _ in range(DRAWS):
        x, p = draw(n, d).requires_grad_(), draw(n, d).requires_grad_()
        p_q, p_k = draw(HEADS, n, d_p).requires_grad_(), draw(HEADS, n, d_p)
        weights = draw(3, HEADS, d, d_h) / d**0.5
        goal = draw(n, HEADS * d_h)
        of_x, of_p = torch.autograd.grad(_loss(x + p, weights, goal), (x, p))
        differences.append(float((of_x - of_p).abs().max() / of_x.abs().max()))
        loss = _loss(x, weights, goal, p_q @ p_k.transpose(1, 2))
        similarities += cosines(torch.autograd.grad(loss, p_q)[0].flatten(1))
    yield Heading("Theorem 2: gradients of words and positions")
    yield Note(f"One layer of attention, {HEADS} heads, mean squared error; {DRAWS} draws.")
    between = f"{min(similarities):+.2f} to {max(similarities):+.2f}"
    rows = [["X and P, added at the input", f"differ by {max(differences):.1g} of the largest"]]
    rows.append(["P_Q of two heads", f"cosines {between}"])
    yield Table(["gradients of", ""], rows, [False] * 2)


def _loss(x: Tensor, weights: Tensor, goal: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    """Mean squared error to ``goal`` of attention over ``x`` (n, d), with ``bias`` (H, n, n)."""
    w_q, w_k, w_v = weights
    logits = (x @ w_q) @ (x @ w_k).transpose(1, 2) / w_q.size(-1) ** 0.5 + bias
    out = logits.softmax(-1) @ (x @ w_v)  # (H, n, d_h)
    return ((out.transpose(0, 1).flatten(1) - goal) ** 2).mean()


def cosines(rows: Tensor) -> list[float]:
    """Cosines of all pairs of ``rows`` (H, n d_p)."""
    unit = F.normalize(rows, dim=-1)
    upper = torch.ones(len(rows), len(rows)).triu(1).bool()
    return [float(value) for value in (unit @ unit.T)[upper]]
