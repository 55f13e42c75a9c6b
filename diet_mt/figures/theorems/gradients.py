"""Theorem 2: gradients of words and of positions (Chen et al. 2021, section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...blocks import Block, Grid, Heading, Items, Note, number
from ..observed import System, added_rows, sentences, word_vectors
from .draws import SHOWN, Sizes, normal


def theorem_2(sizes: Sizes, generator: torch.Generator) -> Iterator[Block]:
    """Gradients of tables that are added at the input, and of tables in each head."""

    draw = normal(generator)
    n, d, d_h, d_p, heads = 16, 24, 6, 6, sizes.heads
    apart, alike = 0.0, []
    for _ in range(sizes.draws):
        x, p = draw(n, d).requires_grad_(), draw(n, d).requires_grad_()
        p_q, p_k = draw(heads, n, d_p).requires_grad_(), draw(heads, n, d_p).requires_grad_()
        w_q, w_k, w_v = (draw(heads, d, d_h) / d**0.5 for _ in range(3))
        goal = draw(n, heads * d_h)
        of_x, of_p = torch.autograd.grad(_loss(x + p, w_q, w_k, w_v, goal), (x, p))
        apart = max(apart, float((of_x - of_p).abs().max() / of_x.abs().max()))
        loss = _loss(x, w_q, w_k, w_v, goal, p_q @ p_k.transpose(1, 2))
        (of_heads,) = torch.autograd.grad(loss, p_q)
        alike += _cosines(of_heads.flatten(1))
    yield Heading("Theorem 2: gradients of words and positions")
    said = f"One layer of attention, {heads} heads, a squared error; {sizes.draws} normal draws."
    yield Note(said)
    added = f"the gradients of X and P differ by at most {apart:.1g} of the largest"
    own = f"cosine of the gradients of P_Q of two heads, {_spread(alike)}"
    yield Items([f"added at the input: {added}", f"in each head: {own}"])


def _loss(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, goal: Tensor, bias: Tensor | float = 0.0
) -> Tensor:
    """Squared error of attention over ``x`` (n, d), with ``bias`` (H, n, n), to ``goal``."""
    logits = (x @ w_q) @ (x @ w_k).transpose(1, 2) / w_q.size(-1) ** 0.5 + bias
    out = logits.softmax(-1) @ (x @ w_v)  # (H, n, d_h)
    return ((out.transpose(0, 1).flatten(1) - goal) ** 2).mean()


def gradients_of_checkpoints(systems: Sequence[System], subset: str) -> Iterator[Block]:
    """Of the loss of translating (or copying) eight sentences."""
    rows = []
    for system in systems:
        for name, stack in system.stacks.items():
            if stack.embed_positions is not None:
                words, positions = input_gradients(system, name, subset)
                added = added_rows(stack, min(SHOWN, system.longest))[0]
                both = _columns(word_vectors(stack)) & _columns(added)
                apart = (words - positions)[:, both].abs()
                cell = "no column is of both"
                if both.any():
                    share = float(apart.max() / words.abs().max())
                    cell = f"differ by {share:.1g} in the {int(both.sum())} columns of both"
                rows.append([system.name, f"input of the {name}", "words, positions", cell])
        for kind, tables in head_gradients(system, subset).items():
            for name, gradient in tables.items():
                cell = f"cosines {_spread(_cosines(gradient))}"
                rows.append([system.name, kind, f"heads, {name}", cell])
    if rows:
        yield Note(
            "In checkpoints, of the loss over eight sentences. At the input: the largest "
            "difference, as a share of the largest gradient; words as they are added, so after "
            "fairseq's factor of sqrt(d), which Theorem 2 is without (of the table of words itself "
            "the gradient is that many times larger). Of heads: cosines between two."
        )
        yield Grid(["system", "where", "of", "gradients"], rows, [False] * 4)


def _columns(table: Tensor) -> Tensor:
    """(..., E) -> (E,), where a table has anything."""
    return table.ne(0).any(0)


def input_gradients(system: System, stack: str, subset: str) -> tuple[Tensor, Tensor]:
    """Gradients of the loss with regard to the word vectors, as they are added, and to the
    positions' of ``stack``: (T, E) each, both summed over the sentences.
    """
    module = system.stacks[stack]
    last: list[Tensor] = []
    kept: list[Tensor] = []

    def words(_: Any, __: Any, out: Tensor) -> Tensor:
        last[:] = [out.detach().requires_grad_()]
        return last[0]

    def positions(_: Any, __: Any, out: Tensor) -> Tensor:
        # Stacks may share their words: those of this one were read last.
        kept.extend([*last, out.detach().requires_grad_()])
        return kept[1]

    with (
        module.embed_tokens.register_forward_hook(words),
        module.embed_positions.register_forward_hook(positions),
    ):
        loss = _model_loss(system, subset)
    of_words, of_positions = torch.autograd.grad(loss, kept)
    # fairseq scales the words before the sum; Theorem 2 is about words as they are added.
    return of_words.sum(0) / module.embed_scale, of_positions.sum(0)


def head_gradients(system: System, subset: str) -> dict[str, dict[str, Tensor]]:
    """Gradients of the tables of attention that have a part for each head: (H, numbers) by the
    kind of attention and the table's name, layers side by side.
    """
    found: dict[str, dict[str, Tensor]] = {}
    loss = _model_loss(system, subset)
    for stack, module in system.stacks.items():
        owners = {stack: module.self_attn_positions}
        owners["cross"] = getattr(module, "encoder_attn_positions", None)
        for kind, owner in owners.items():
            if owner is None:
                continue
            of_heads: dict[str, list[Tensor]] = {}
            for table in owner.tables():
                for name, parameter in table.named_parameters():
                    if parameter.size(0) == owner.shape.heads > 1:
                        of_heads.setdefault(name, []).append(parameter)
            for name, parameters in of_heads.items():
                gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
                joint = torch.cat([gradient.flatten(1) for gradient in gradients], 1)
                found.setdefault(kind, {})[name] = joint
    return found


def _model_loss(system: System, subset: str) -> Tensor:
    """Cross-entropy of eight sentences: the target's words, or in an encoder its own."""
    given, wanted = sentences(system, subset, 8)
    with torch.enable_grad():
        logits = system.model(**given)[0]
    pad = system.task.source_dictionary.pad()
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=pad)


def _cosines(rows: Tensor) -> list[float]:
    """Of each two of ``rows`` (H, numbers)."""
    unit = F.normalize(rows, dim=-1)
    found = (unit @ unit.T)[torch.ones(len(rows), len(rows)).triu(1).bool()]
    return [float(value) for value in found]


def _spread(values: Sequence[float]) -> str:
    ends = (min(values), max(values), sum(values) / len(values))
    low, high, mean = (number(value, "+.2f") for value in ends)
    return f"{low} to {high}, mean {mean}"
