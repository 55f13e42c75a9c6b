"""FIRE: a small network over the distance, taken relative to the length, as a bias."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..nn.compiled import may_read
from ..nn.precision import no_autocast
from .base import (
    AttentionBias,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
    Table,
)
from .position_ids import PositionRange, as_tensor, distance_limits, num_positions
from .relative import distances, toeplitz

# From the authors' listing: hidden units of the network, initial L in tokens, and the constant that
# keeps the normalizer above 0; initially c is 0.1.
HIDDEN = 32
INITIAL_THRESHOLD = 512.0
EPSILON = 1e-6


def network_table(heads: int) -> Table:
    """f of one layer, c and L: ``hidden_weight``, ``hidden_bias`` (1, 32), ``out`` (H|1, 32), ``c``
    (1, 1), ``threshold`` (1, 1) as a multiple of 512. Initialized like ``nn.Linear``.
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
    """f(psi(i - j) / psi(max(L, i, j))) for all layers: (L|1, H|1, T, S)."""

    limited = False

    def __init__(self, shape: AttentionShape, sharing: str | None) -> None:
        super().__init__(shape, sharing, network_table)

    def forward(self, queries: PositionRange, keys: PositionRange) -> Tensor:
        c = self.stacked("c").abs()  # (L|1, 1, 1), as the threshold
        threshold = self.stacked("threshold").abs() * INITIAL_THRESHOLD
        with no_autocast(c.device):
            if isinstance(queries, range) and isinstance(keys, range) and may_read(c):
                last = max(queries.stop, keys.stop) - 1
                if bool((threshold >= last).all()):
                    # No sentence is as long as L: the bias depends on the distance alone.
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
    """psi(d) / psi(``longest``), odd in d = i - j."""
    psi = torch.sign(distance) * torch.log1p(c * distance.abs())
    return psi / (torch.log1p(c * longest) + EPSILON)


@dataclass(frozen=True)
class Fire(PositionEncoding):
    """Li et al. 2023, "Functional Interpolation for Relative Positions Improves Long Context
    Transformers" (arXiv:2310.04418), section 3:

        A[i, j] = q_i . k_j / sqrt(D) + f(psi(i - j) / psi(max(L, i))), psi(x) = log(c x + 1)

    f has one hidden layer of 32 units, which the heads share, and one output for each head. Every
    layer has its own f, c and L; shared by the layers it is the paper's FIRE-S. Where we differ:
    the paper has decoders only, where i - j >= 0. Elsewhere psi(-x) = -psi(x), so that f can tell
    before from behind, and max(L, i) is max(L, i, j), so that the ratio is within -1 and 1; under a
    causal mask both are the paper's. Cross-attention has its own f, where i counts target and j
    source positions. The output has no bias of its own, to which softmax is invariant.
    """

    name = "fire"
    default_sharing = "none"
    color = "#44cc44"

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        return FireBias(shape, self.sharing)
