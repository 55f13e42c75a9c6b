"""Words and positions at the input: what their sum and their concatenation can represent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ...blocks import Block, Grid, Heading, Items, Note
from ..observed import System, added_rows, word_vectors
from .draws import SHOWN, normal


def sum_and_concatenation(generator: torch.Generator) -> Iterator[Block]:
    """What [x ; p] and x + p can represent of logits between (word, position) pairs.

    Asked for are logits T[i, j] that positions alone decide. In a sum, (x_v + p_i)^T M (x_w + p_j)
    can be free of the words only where M is 0 on all differences of words: if these span all d
    columns, M is 0 and so are all logits. In a concatenation M has a block of its own for
    positions, and so it has in a sum whose words leave columns free, which training would have to
    find. Each head has its M, but the word and position tables are the same for all.
    """
    d, d_p, words, n = 16, 4, 40, 24
    draw = normal(generator)
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


def columns_of_checkpoints(systems: Sequence[System]) -> Iterator[Block]:
    """Whether trained words leave columns to the positions that are added to them."""
    rows = []
    for system in systems:
        for name, stack in system.stacks.items():
            if stack.embed_positions is None:
                continue
            positions = added_rows(stack, shown := min(SHOWN, system.longest))[0]
            shared, columns = shared_columns(word_vectors(stack), positions)
            width = positions.size(1)
            shares = [f"{shared:.1%}", f"{columns / width:.1%}"]
            rows.append([system.name, name, f"{columns} of {width}", *shares])
    if rows:
        yield Note(
            f"In checkpoints: directions that hold 99 % of the first {shown} positions, and the "
            "share of the words' variance there; 0 where words leave room, the last column by "
            "chance."
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
