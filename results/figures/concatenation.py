"""Sum and concatenation of words and positions at the input: which logits they can represent.

    python results/figures/concatenation.py [BIN CHECKPOINT ...]

Wanted are logits between (word, position) pairs that positions alone decide. In a sum,
(x_v + p_i)^T M (x_w + p_j) is free of the words only where M is 0 on all differences of words; if
these span all d columns, M is 0. A concatenation is the sum of [x ; 0] and [0 ; p].
"""

import sys
from functools import partial
from pathlib import Path

import torch

from diet_mt.figures.theorems import theorem_1, theorem_2

D, RANK, WORDS, POSITIONS, PAIRS = 16, 4, 40, 24, 4000


def missed(left, right, wanted):
    """Share of the variance of ``wanted`` (N,) that no left^T M right + c explains; (N, d) each."""
    products = torch.einsum("nd,ne->nde", left, right).flatten(1)
    design = torch.cat([products, torch.ones(len(wanted), 1).double()], 1)
    best = torch.linalg.lstsq(design, wanted[:, None], driver="gelsd").solution[:, 0]
    return float((design @ best - wanted).var() / wanted.var())


def shared_columns(words, positions):
    """Share of the variance of words (V, d) in the directions that hold 99 % of that of positions
    (n, d), and the number of these directions."""
    _, singular, directions = torch.linalg.svd(positions - positions.mean(0), full_matrices=False)
    share = (singular**2).cumsum(0) / (singular**2).sum()
    count = int((share < 0.99).sum()) + 1
    centred = words - words.mean(0)
    return float((centred @ directions[:count].T).square().sum() / centred.square().sum()), count


def on_draws(seed=1):
    random = torch.Generator().manual_seed(seed)
    draw = partial(torch.randn, generator=random, dtype=torch.float64)
    list(theorem_1(draw)), list(theorem_2(draw))  # for the numbers that figures.md has
    x, p, factors = draw(WORDS, D), draw(POSITIONS, D), draw(POSITIONS, RANK)
    narrow, own = x.clone(), torch.zeros(POSITIONS, D).double()
    narrow[:, D - RANK :], own[:, D - RANK :] = 0, factors
    v, i, w, j = (torch.randint(0, n, (PAIRS,), generator=random) for n in (WORDS, POSITIONS) * 2)
    for name, words, positions, width in (
        (f"sum, words in all {D} columns", x, p, D),
        (f"concatenation, {D - RANK} and {RANK} columns", narrow, own, D - RANK),
        ("words alone, positions in attention", 0 * x, own, D),
    ):
        error = missed(
            words[v] + positions[i], words[w] + positions[j], (factors @ factors.T)[i, j]
        )
        lost = torch.linalg.svdvals(x)[width:].square().sum() / x.square().sum()
        print(f"{name}: {error:.1%} of the logits missed, {lost:.1%} of the words")


def of_checkpoints(data, checkpoints):
    from diet_mt.figures.capture import added_rows, open_systems

    for system in open_systems(checkpoints, data):
        for name, stack in system.stacks.items():
            if stack.embed_positions is not None:
                positions = added_rows(stack, min(32, system.longest))[0]
                words = stack.embed_tokens(torch.arange(stack.embed_tokens.num_embeddings))
                share, count = shared_columns(words.detach().double(), positions)
                chance = count / positions.size(1)
                print(f"{system.name}, {name}: {share:.1%} of the words' variance in the {count} "
                      f"directions of positions, {chance:.1%} by chance")  # fmt: skip


if __name__ == "__main__":
    on_draws()
    if sys.argv[1:]:
        of_checkpoints(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
