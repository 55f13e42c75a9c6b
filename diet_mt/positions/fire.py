"""FIRE: a bias that a small network computes from the distance relative to the length."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..nn.compiled import may_read
from ..nn.precision import no_autocast
from .base import AttentionBias, AttentionPositions, AttentionShape, PositionEncoding, Table
from .position_ids import PositionRange, as_tensor, distance_limits, num_positions
from .relative import distances, toeplitz

# From the authors' listing, as the initial c of 0.1: hidden units of the network, initial L in
# tokens, and a constant that keeps the denominator above 0.
HIDDEN = 32
INITIAL_THRESHOLD = 512.0
EPSILON = 1e-6


def network_table(heads: int) -> Table:
    """Parameters of one layer: the network f, initialized like ``nn.Linear``, c and L.

    ``hidden_weight`` and ``hidden_bias`` (1, 32); ``out`` (H|1, 32); ``c`` (1, 1); ``threshold``
    (1, 1): L / 512.
    """
    bound = HIDDEN**-0.5
    return Table(
        hidden_weight=torch.empty(1, HIDDEN).uniform_(-1, 1),
        hidden_bias=torch.empty(1, HIDDEN).uniform_(-1, 1),
        out=torch.empty(heads, HIDDEN).uniform_(-bound, bound),
        c=torch.full((1, 1), 0.1),
        threshold=torch.ones(1, 1),
    )


class FireBias(AttentionBias):
    """f(psi(i - j) / psi(max(L, i, j))) in all layers: (L|1, H|1, T, S)."""

    limited = False

    def __init__(self, shape: AttentionShape, sharing: str | None) -> None:
        super().__init__(shape, sharing, network_table)

    def forward(self, queries: PositionRange, keys: PositionRange) -> Tensor:
        c = self.stacked("c").abs()  # (L|1, 1, 1), like the threshold
        threshold = self.stacked("threshold").abs() * INITIAL_THRESHOLD
        with no_autocast(c.device):
            if isinstance(queries, range) and isinstance(keys, range) and may_read(c):
                last = max(queries.stop, keys.stop) - 1
                if bool((threshold >= last).all()):
                    # No position exceeds L: the bias depends on the distance only.
                    distance = distances(*distance_limits(queries, keys), c.device)
                    window = self.network(ratio(distance[None], c, threshold)).squeeze(2)
                    return toeplitz(window, num_positions(queries))
            query, key = as_tensor(queries, c.device)[:, None], as_tensor(keys, c.device)
            longest = torch.maximum(threshold, torch.maximum(query, key).to(c.dtype))
            return self.network(ratio(query - key, c, longest))

    def network(self, x: Tensor) -> Tensor:
        """f of every number of ``x`` (L|1, T, S): (L|1, H|1, T, S)."""
        weight, bias, out = map(self.stacked, ("hidden_weight", "hidden_bias", "out"))
        hidden = torch.relu(x.flatten(1).unsqueeze(-1) * weight + bias)  # (L|1, T*S, 32)
        f: Tensor = (out @ hidden.transpose(1, 2)).unflatten(-1, x.shape[1:])
        return f


def ratio(distance: Tensor, c: Tensor, longest: Tensor) -> Tensor:
    """psi(d) / psi(``longest``) of d = i - j, with psi(-d) = -psi(d)."""
    psi = torch.sign(distance) * torch.log1p(c * distance.abs())
    return psi / (torch.log1p(c * longest) + EPSILON)


@dataclass(frozen=True)
class Fire(PositionEncoding):
    """FIRE: a function of the relative distance (Li et al. 2023, arXiv:2310.04418, section 3):

        A[i, j] = q_i . k_j / sqrt(D) + f(psi(i - j) / psi(max(L, i))), psi(x) = log(c x + 1)

    f has one hidden layer of 32 units, shared by the heads, and one output per head. By default,
    every layer has its own f, c and L; shared by the layers, it is the paper's FIRE-S. Where we
    differ: the paper has decoders only, where i - j >= 0. Otherwise psi(-x) = -psi(x), so that f
    distinguishes both directions, and max(L, i, j) replaces max(L, i), so that the ratio is between
    -1 and 1; with a causal mask both are as in the paper. Cross-attention, where i counts target
    and j source positions, has its own f. The output has no bias, to which softmax is invariant.
    """

    name = "fire"
    default_sharing = "none"
    color = "#44cc44"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return FireBias(shape, self.sharing)
