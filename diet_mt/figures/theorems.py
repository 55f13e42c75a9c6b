"""The theorems of Chen et al. 2021 (section 2) as numbers: ranks and gradients.

n positions, d the model's width, d_h the size of a head, d_p the rank of positions. Draws are
normal, in float64. The ranks of checkpoints are a figure: ``diet-mt figures --only rank``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..evaluation.fairseq_options import quiet
from ..report.blocks import Block, Heading, Note, Table, text
from .capture import System, added_rows, open_systems, sentences, word_vectors
from .rank import ranks

HEADS, DRAWS, SENTENCES = 4, 10, 8


def report(checkpoints: Sequence[Path], data: Path | None, subset: str, seed: int) -> str:
    """Both theorems on draws and, with ``data``, theorem 2 in checkpoints, as text."""
    quiet()
    draw = partial(torch.randn, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    blocks = [*theorem_1(draw), *theorem_2(draw)]
    if data is not None:
        blocks += of_checkpoints(open_systems(checkpoints, data), subset)
    return text(blocks)


def theorem_1(draw: Any) -> Iterator[Block]:
    """The rank of a head's logits, with positions at the input and inside attention."""
    n, d, d_h, d_p = 96, 128, 32, 48
    shapes = (n, d), (n, d), (n, d_p), (n, d_p), (d, d_h), (d, d_h)
    drawn = [logits_of(*(draw(shape) for shape in shapes)) for _ in range(DRAWS)]
    rows = []
    for name, bound in zip(drawn[0], (d_h, d_h + d_p, d_h + d_p, n), strict=True):
        reached = [int(ranks(logits[name]).rank) for logits in drawn]
        between = " to ".join(map(str, sorted({min(reached), max(reached)})))
        rows.append([name, str(min(n, bound)), between])
    yield Heading("Theorem 1: rank of the logits of one head")
    yield Note(f"n = {n}, d = {d}, d_h = {d_h}, d_p = {d_p}; {DRAWS} draws.")
    yield Table(["logits", "at most", "reached"], rows)


def logits_of(
    x: Tensor, p: Tensor, p_q: Tensor, p_k: Tensor, w_q: Tensor, w_k: Tensor
) -> dict[str, Tensor]:
    """Words and positions (n, d), (n, d_p), projections (d, d_h) -> logits (n, n)."""
    n, words = len(x), x @ w_q @ (x @ w_k).T
    by_distance = torch.arange(n)[:, None] - torch.arange(n) + n - 1
    line = torch.cat([p_q, p_k]).flatten()[: 2 * n - 1]
    return {
        "(X+P) W_Q W_K^T (X+P)^T, positions at the input": (x + p) @ w_q @ ((x + p) @ w_k).T,
        "X W_Q W_K^T X^T + P^ P^^T, the theorem's": words + p_q @ p_q.T,
        "X W_Q W_K^T X^T + P_Q P_K^T, DIET-ABS": words + p_q @ p_k.T,
        "X W_Q W_K^T X^T + R[i-j], DIET-REL": words + line[by_distance],
    }


def theorem_2(draw: Any) -> Iterator[Block]:
    """Gradients of tables that are added at the input, and of tables in each head."""
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
    yield Note(f"One layer of attention, {HEADS} heads, squared error; {DRAWS} draws.")
    rows = [["X and P, added at the input", f"differ by {max(differences):.1g} of the largest"]]
    rows.append(["P_Q of two heads", f"cosines {_spread(similarities)}"])
    yield Table(["gradients of", ""], rows, [False] * 2)


def _loss(x: Tensor, weights: Tensor, goal: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    """Squared error to ``goal`` of attention over ``x`` (n, d), with ``bias`` (H, n, n)."""
    w_q, w_k, w_v = weights
    logits = (x @ w_q) @ (x @ w_k).transpose(1, 2) / w_q.size(-1) ** 0.5 + bias
    out = logits.softmax(-1) @ (x @ w_v)  # (H, n, d_h)
    return ((out.transpose(0, 1).flatten(1) - goal) ** 2).mean()


def of_checkpoints(systems: Sequence[System], subset: str) -> Iterator[Block]:
    """Theorem 2 in trained models."""
    rows = []
    for system in systems:
        for name, stack in system.stacks.items():
            if stack.embed_positions is not None:
                words, positions = input_gradients(system, name, subset)
                added = added_rows(stack, min(32, system.longest))[0]
                both = word_vectors(stack).any(0) & added.any(0)  # columns that both tables use
                share = (words - positions)[:, both].abs().sum() / words.abs().max()
                cell = f"differ by {share:.1g} in the {int(both.sum())} columns of both"
                rows.append([system.name, f"input of the {name}", "words, positions", cell])
        for kind, tables in head_gradients(system, subset).items():
            for name, gradient in tables.items():
                cell = f"cosines {_spread(cosines(gradient))}"
                rows.append([system.name, kind, f"heads, {name}", cell])
    yield Note(f"In checkpoints, of the loss over {SENTENCES} sentences; words as they are added.")
    yield Table(["system", "where", "of", "gradients"], rows, [False] * 4)


def input_gradients(system: System, stack: str, subset: str) -> tuple[Tensor, Tensor]:
    """Gradients (T, E) of word vectors and of positions, as they are added, summed over sentences.

    fairseq scales the words before the sum, unlike Theorem 2.
    """
    module, last, added = system.stacks[stack], [], []  # type: Any, list[Tensor], list[Tensor]

    def words(_: Any, __: Any, out: Tensor) -> Tensor:
        last[:] = [out.detach().requires_grad_()]
        return last[0]

    def positions(_: Any, __: Any, out: Tensor) -> Tensor:
        # Stacks may share their words; those of this one were read last.
        added.extend([*last, out.detach().requires_grad_()])
        return added[1]

    with (
        module.embed_tokens.register_forward_hook(words),
        module.embed_positions.register_forward_hook(positions),
    ):
        loss = _model_loss(system, subset)
    of_words, of_positions = torch.autograd.grad(loss, added)
    return of_words.sum(0) / module.embed_scale, of_positions.sum(0)


def head_gradients(system: System, subset: str) -> dict[str, dict[str, Tensor]]:
    """Gradients (H, numbers) of tables with a part for each head, layers side by side, by kind of
    attention and name of the table.
    """
    loss = _model_loss(system, subset)
    gradients: dict[str, dict[str, list[Tensor]]] = {}
    for stack, module in system.stacks.items():
        owners = {stack: module.self_attn_positions}
        owners["cross"] = getattr(module, "encoder_attn_positions", None)
        for kind, owner in owners.items():
            for table in owner.tables() if owner is not None else ():
                for name, parameter in table.named_parameters():
                    if parameter.size(0) == owner.shape.heads > 1:
                        (own,) = torch.autograd.grad(loss, parameter, retain_graph=True)
                        gradients.setdefault(kind, {}).setdefault(name, []).append(own.flatten(1))
    return {
        kind: {name: torch.cat(own, 1) for name, own in tables.items()}
        for kind, tables in gradients.items()
    }


def _model_loss(system: System, subset: str) -> Tensor:
    """Cross-entropy of the target's words, or of an encoder's own."""
    given, wanted = sentences(system, subset, SENTENCES)
    with torch.enable_grad():
        logits = system.model(**given)[0]
    pad = system.task.source_dictionary.pad()
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=pad)


def cosines(rows: Tensor) -> list[float]:
    """Cosines of all pairs of ``rows`` (H, numbers)."""
    unit = F.normalize(rows, dim=-1)
    upper = torch.ones(len(rows), len(rows)).triu(1).bool()
    return [float(value) for value in (unit @ unit.T)[upper]]


def _spread(values: Sequence[float]) -> str:
    return f"{min(values):+.2f} to {max(values):+.2f}"
