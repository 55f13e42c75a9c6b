"""The theorems of Chen et al. 2021, and sum against concatenation, as numbers.

On random draws, in float64, and on checkpoints. Letters as in the paper: n positions, d the model's
width, d_h the size of a head, d_p the rank of the positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..blocks import Block, Grid, Heading, Items, Note, text
from ..evaluation.fine_tuned import quiet
from ..positions import KINDS
from .measures import RANK_THRESHOLD, ranks
from .observed import System, joined, observe, open_systems, sentences


@dataclass(frozen=True)
class Sizes:
    """Of the random draws; as in the checkpoints of the tiny models."""

    n: int = 96
    d: int = 128
    d_h: int = 32
    d_p: int = 48
    heads: int = 4
    draws: int = 10


def report(
    checkpoints: Sequence[Path], data: Path | None, subset: str, tokens: int, seed: int
) -> str:
    """All sections, for a terminal. Raises UserError for checkpoints that cannot be loaded."""
    quiet()
    systems = open_systems(checkpoints, data) if data is not None else []
    generator, sizes = torch.Generator().manual_seed(seed), Sizes()
    blocks = [
        *theorem_1(sizes, generator),
        *_checkpoint_ranks(systems, subset, tokens),
        *theorem_2(sizes, generator),
        *_checkpoint_gradients(systems, subset),
        *sum_and_concatenation(generator),
        *_checkpoint_columns(systems),
    ]
    return text(blocks)


def _normal(generator: torch.Generator) -> Callable[..., Tensor]:
    """Draws of a shape, in float64."""
    return partial(torch.randn, generator=generator, dtype=torch.float64)


def theorem_1(sizes: Sizes, generator: torch.Generator) -> Iterator[Block]:
    """The rank of one head's logits, with positions at the input and inside attention."""
    n, d, d_h, d_p = sizes.n, sizes.d, sizes.d_h, sizes.d_p

    draw = _normal(generator)
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


def _checkpoint_ranks(systems: Sequence[System], subset: str, tokens: int) -> Iterator[Block]:
    """For each system and kind of attention the rank of its heads over text."""
    rows = []
    for system in systems:
        size = min(tokens, system.longest)
        seen = observe(system, joined(system, subset, size, 4))
        for kind in KINDS:
            calls = [call for call in seen if call.kind == kind]
            if not calls:
                continue
            whole = torch.cat([ranks(call.logits()).rank.flatten() for call in calls])
            term = torch.cat([ranks(call.positional()).rank.flatten() for call in calls])
            head = calls[0].module.head_dim
            sizes = [str(size), str(head), _range(term.tolist())]
            bound = str(min(size, head + int(term.max())))
            rows.append([system.name, kind, *sizes, bound, _range(whole.tolist())])
    if rows:
        yield Note(
            "Over text, all layers and heads; at most: head size and the rank of the term. (A term "
            "that is 0: positions at the input, or rotated into queries and keys.)"
        )
        heads = ["system", "attention", "n", "d_h", "rank of the term", "at most", "reached"]
        yield Grid(heads, rows, [False, False, *[True] * 5])


def theorem_2(sizes: Sizes, generator: torch.Generator) -> Iterator[Block]:
    """Gradients of tables that are added at the input, and of tables in each head."""

    draw = _normal(generator)
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


def _checkpoint_gradients(systems: Sequence[System], subset: str) -> Iterator[Block]:
    """Of the loss of translating (or copying) eight sentences."""
    rows = []
    for system in systems:
        for name, stack in system.stacks.items():
            if stack.embed_positions is not None:
                words, positions = input_gradients(system, name, subset)
                both = _columns(_words(stack)) & _columns(stack.embed_positions.rows(0, 32)[0])
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


def _words(stack: Any) -> Tensor:
    """All word vectors of a stack as they are added, but for their scale: (V, E)."""
    vectors: Tensor = stack.embed_tokens(torch.arange(stack.embed_tokens.num_embeddings))
    return vectors.detach().double()


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


def sum_and_concatenation(generator: torch.Generator) -> Iterator[Block]:
    """What [x ; p] and x + p can represent of logits between (word, position) pairs.

    Asked for are logits T[i, j] that positions alone decide. In a sum, (x_v + p_i)^T M (x_w + p_j)
    can be free of the words only where M is 0 on all differences of words: if these span all d
    columns, M is 0 and so are all logits. In a concatenation M has a block of its own for
    positions, and so it has in a sum whose words leave columns free, which training would have to
    find. Each head has its M, but the word and position tables are the same for all.
    """
    d, d_p, words, n = 16, 4, 40, 24
    draw = _normal(generator)
    x, p, factors = draw(words, d), draw(n, d), draw(n, d_p)
    wanted = factors @ factors.T
    narrow = x.clone()
    narrow[:, d - d_p :] = 0
    own = torch.zeros(n, d).double()
    own[:, d - d_p :] = factors
    pairs = [torch.randint(0, k, (4000,), generator=generator) for k in (words, n, words, n)]
    cases = {
        f"sum, words in all {d} columns": (x, p, d),
        f"sum, words in {d - d_p}, positions in the other {d_p}": (narrow, own, d - d_p),
        # The same numbers: a concatenation is the sum of [x ; 0] and [0 ; p].
        f"concatenation, {d - d_p} and {d_p} columns": (narrow, own, d - d_p),
        "words alone, positions in attention": (0 * x, own, d),
    }
    rows = []
    for name, (of_words, of_positions, width) in cases.items():
        both = of_words[pairs[0]] + of_positions[pairs[1]]
        other = of_words[pairs[2]] + of_positions[pairs[3]]
        error = bilinear_error(both, other, wanted[pairs[1], pairs[3]])
        rows.append([name, f"{error:.1%}", f"{_lost(x, width):.1%}"])
    yield Heading("Sum and concatenation at the input")
    yield Note(
        f"{words} words and {n} positions in d = {d} columns, normal draws. Logits that positions "
        f"alone decide (rank {d_p}) are asked of one bilinear form over (word, position) pairs: "
        "what the best one misses, as a share of their variance. Words missed: by the best table "
        "with the columns left for words, of a table of all of them."
    )
    yield Grid(["input", "logits missed", "words missed"], rows)
    yield Items(
        [
            "Every concatenation is a sum: of [x ; 0] and [0 ; p]. A sum is a concatenation only "
            "where words and positions keep to columns of their own.",
            "In a sum that does not, no choice of P helps: where differences of words span all "
            "columns, a form that is blind to words is 0.",
            "The sum need not fix d_p beforehand, and may give columns to both; the price is that "
            "no head can ask for positions alone, unless the table learns to leave room.",
        ]
    )


def bilinear_error(left: Tensor, right: Tensor, wanted: Tensor) -> float:
    """``left`` and ``right`` (N, d), ``wanted`` (N,) -> what the best left^T M right + c leaves of
    the variance of ``wanted``.
    """
    products = torch.einsum("nd,ne->nde", left, right).flatten(1)
    design = torch.cat([products, torch.ones(len(wanted), 1).double()], 1)
    found = torch.linalg.lstsq(design, wanted[:, None], driver="gelsd").solution[:, 0]
    return float((design @ found - wanted).var() / wanted.var())


def _lost(table: Tensor, columns: int) -> float:
    """Share of the squares of ``table`` (V, d) that its best approximation of rank ``columns``
    misses (Eckart & Young 1936).
    """
    squares = torch.linalg.svdvals(table) ** 2
    return float(squares[columns:].sum() / squares.sum())


def _checkpoint_columns(systems: Sequence[System]) -> Iterator[Block]:
    """Whether trained words leave columns to the positions that are added to them."""
    rows = []
    for system in systems:
        for name, stack in system.stacks.items():
            if stack.embed_positions is None:
                continue
            positions = stack.embed_positions.rows(0, 32)[0].detach().double()
            shared, columns = shared_columns(_words(stack), positions)
            width = positions.size(1)
            shares = [f"{shared:.1%}", f"{columns / width:.1%}"]
            rows.append([system.name, name, f"{columns} of {width}", *shares])
    if rows:
        yield Note(
            "In checkpoints: directions that hold 99 % of the first 32 positions, and the share of "
            "the words' variance there; 0 where words leave room, the last column by chance."
        )
        heads = ["system", "input of", "directions", "words there", "by chance"]
        yield Grid(heads, rows, [False, False, True, True, True])


def shared_columns(words: Tensor, positions: Tensor) -> tuple[float, int]:
    """``words`` (V, E), ``positions`` (n, E) -> the share of the words' variance in the fewest
    directions that hold 99 % of the positions' variance, and how many these are.
    """
    centred = words - words.mean(0)
    _, singular, directions = torch.linalg.svd(positions - positions.mean(0), full_matrices=False)
    held = (singular**2).cumsum(0) / (singular**2).sum()
    count = int((held < 0.99).sum()) + 1
    inside = centred @ directions[:count].T
    return float(inside.square().sum() / centred.square().sum()), count


def _cosines(rows: Tensor) -> list[float]:
    """Of each two of ``rows`` (H, numbers)."""
    unit = F.normalize(rows, dim=-1)
    found = (unit @ unit.T)[torch.ones(len(rows), len(rows)).triu(1).bool()]
    return [float(value) for value in found]


def _spread(values: Sequence[float]) -> str:
    mean = sum(values) / len(values)
    return f"{min(values):+.2f} to {max(values):+.2f}, mean {mean:+.2f}"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
