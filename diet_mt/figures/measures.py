"""Numbers of one matrix of logits or of attention: rank, distance, locality."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# A singular value counts where it is more than this share of the largest. In float64 rounding is
# near 1e-15, so this is the rank that the formulas have; how much of it matters is what the
# singular values and the effective rank say.
RANK_THRESHOLD = 1e-9
# Share of the largest entry that rounding may take from the entries of one diagonal.
_ROUNDING = 1e-9
# Of a head's attention: at least this share near a distance is a pattern there.
PATTERN = 0.5
# No more than this many times what a flat softmax has near the query is no pattern there.
FLAT = 1.5


@dataclass(frozen=True)
class Ranks:
    """Of matrices (..., T, S): ``singular`` (..., min(T, S)), descending; ``rank`` (...), the
    number of those above ``RANK_THRESHOLD`` times the largest; ``effective`` (...), the exponential
    of the entropy of singular values as shares of their sum (Roy & Vetterli 2007).
    """

    singular: Tensor
    rank: Tensor
    effective: Tensor


def ranks(matrices: Tensor) -> Ranks:
    """``matrices`` (..., T, S), float64."""
    singular = torch.linalg.svdvals(matrices)
    largest = singular[..., :1]
    rank = (singular > RANK_THRESHOLD * largest).sum(-1)
    shares = singular / singular.sum(-1, keepdim=True).clamp(min=torch.finfo(singular.dtype).tiny)
    effective = torch.special.entr(shares).sum(-1).exp() * (rank > 0)
    return Ranks(singular, rank, effective)


def by_distance(matrices: Tensor) -> Tensor | None:
    """(..., T, S) -> the value of each distance i - j from 1 - S to T - 1, (..., T + S - 1), where
    the entries depend on the distance alone (every matrix is Toeplitz); otherwise None.
    """
    change = matrices[..., 1:, 1:] - matrices[..., :-1, :-1]
    if change.numel() and change.abs().max() > _ROUNDING * matrices.abs().max():
        return None
    return torch.cat([matrices[..., 0, :].flip(-1), matrices[..., 1:, 0]], -1)


@dataclass(frozen=True)
class Look:
    """Where one head looks. Distances are i - j of query and key, in tokens.

    ``peak``: the distance with the largest mean weight, of those that half of the queries have, or,
    where none does, of the most frequent; ``near``: share of the weights within K of distance 0;
    ``near_peak``: within K of the peak; ``flat``: the share within K of distance 0 that
    equal weights would have.
    """

    peak: int
    near: float
    near_peak: float
    flat: float

    @property
    def pattern(self) -> str:
        """``local``: at least half of the weight is near the query's own position; ``shifted``:
        near another distance; ``global``: near the query no more than ``FLAT`` times what equal
        weights have there; ``between``: none of these.
        """
        if self.near >= PATTERN:
            return "local"
        if self.near_peak >= PATTERN:
            return "shifted"
        return "global" if self.near <= FLAT * self.flat else "between"


def look(weights: Tensor, open_keys: Tensor, near: int) -> Look:
    """Of attention ``weights`` (B, T, S) of one head; ``open_keys`` (B, T, S): the keys that a
    query may look at, none for a query that is padding; ``near``: K, in tokens.
    """
    queries, keys = weights.shape[-2:]
    away = torch.arange(queries)[:, None] - torch.arange(keys)  # (T, S)
    places = (away + keys - 1).expand(weights.shape)[open_keys]
    counts = torch.bincount(places, minlength=queries + keys - 1)
    sums = torch.zeros(queries + keys - 1, dtype=weights.dtype)
    sums.index_add_(0, places, weights[open_keys])
    asked = open_keys.any(-1)  # (B, T)
    enough = min(int(asked.sum()), 2 * int(counts.max()))  # where targets are long, no half is left
    means = torch.where(counts * 2 >= enough, sums / counts.clamp(min=1), -1.0)
    peak = int(means.argmax()) - (keys - 1)
    at_own, at_peak = away.abs() <= near, (away - peak).abs() <= near
    equal = open_keys / open_keys.sum(-1, keepdim=True).clamp(min=1)

    def share(of: Tensor, where: Tensor) -> float:
        return float((of * (open_keys & where)).sum(-1)[asked].mean())

    return Look(peak, share(weights, at_own), share(weights, at_peak), share(equal, at_own))
