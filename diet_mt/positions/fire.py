"""FIRE: a small network says what a key counts at its distance, taken relative to the length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

import torch
from torch import Tensor, nn

from ..nn.compiled import may_read
from .base import AttentionBias, AttentionShape, PositionEncoding, no_autocast
from .relative import distances, toeplitz
from .spans import Span, as_tensor, extremes, tokens_in

# Of the authors' listing: hidden units of the network, initial c, initial L in tokens, and what
# keeps the normalizer above 0.
HIDDEN = 32
INITIAL_C = 0.1
INITIAL_THRESHOLD = 512.0
EPSILON = 1e-6


class Network(nn.Module):
    """f of one layer, c and L: ``hidden_weight``, ``hidden_bias`` (1, 32), ``out`` (H|1, 32),
    ``c`` (1, 1), ``threshold`` (1, 1) as a multiple of 512. Drawn as ``nn.Linear`` would be.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.hidden_weight = nn.Parameter(torch.empty(1, HIDDEN).uniform_(-1, 1))
        self.hidden_bias = nn.Parameter(torch.empty(1, HIDDEN).uniform_(-1, 1))
        bound = 1 / math.sqrt(HIDDEN)
        self.out = nn.Parameter(torch.empty(heads, HIDDEN).uniform_(-bound, bound))
        self.c = nn.Parameter(torch.full((1, 1), INITIAL_C))
        self.threshold = nn.Parameter(torch.ones(1, 1))


class FireBias(AttentionBias):
    """f(psi(i - j) / psi(max(L, i, j))) for all layers: (L|1, H|1, T, S)."""

    limited: ClassVar[bool] = False

    def __init__(self, shape: AttentionShape, sharing: Optional[str]) -> None:
        super().__init__(shape, sharing, Network)

    def forward(self, queries: Span, keys: Span) -> Tensor:
        c, threshold = self.settings()  # (L|1, 1, 1) each
        with no_autocast(c.device):
            if isinstance(queries, range) and isinstance(keys, range) and may_read(c):
                last = max(queries.stop, keys.stop) - 1
                if bool((threshold >= last).all()):
                    # No sentence is as long as L: all depends on the distance alone.
                    away = distances(*extremes(queries, keys), c.device)
                    found = self.network(ratio(away[None], c, threshold)).squeeze(2)
                    return toeplitz(found, tokens_in(queries))
            query, key = as_tensor(queries, c.device)[:, None], as_tensor(keys, c.device)
            longest = torch.maximum(threshold, torch.maximum(query, key).to(c.dtype))
            return self.network(ratio(query - key, c, longest))

    def settings(self) -> Tuple[Tensor, Tensor]:
        """c and L, not below 0, (L|1, 1, 1) each."""
        return self.stacked("c").abs(), self.stacked("threshold").abs() * INITIAL_THRESHOLD

    def network(self, x: Tensor) -> Tensor:
        """f of every number of ``x`` (L|1, T, S): (L|1, H|1, T, S)."""
        weight, bias, out = map(self.stacked, ("hidden_weight", "hidden_bias", "out"))
        hidden = torch.relu(x.flatten(1).unsqueeze(-1) * weight + bias)  # (L|1, T*S, 32)
        found: Tensor = (out @ hidden.transpose(1, 2)).unflatten(-1, x.shape[1:])
        return found


def ratio(distance: Tensor, c: Tensor, longest: Tensor) -> Tensor:
    """psi(d) / psi(``longest``), odd in d = i - j."""
    near = torch.sign(distance) * torch.log1p(c * distance.abs())
    return near / (torch.log1p(c * longest) + EPSILON)


@dataclass(frozen=True)
class Fire(PositionEncoding):
    """Li et al. 2023, "Functional Interpolation for Relative Positions Improves Long Context
    Transformers" (arXiv:2310.04418), section 3:

        A[i, j] = q_i . k_j / sqrt(D) + f(psi(i - j) / psi(max(L, i))), psi(x) = log(c x + 1)

    f has one hidden layer of 32 units, which the heads share, and one output for each head. Every
    layer has its own f, c and L; shared by the layers it is the paper's FIRE-S. Where we differ:
    the paper has decoders only, where i - j >= 0. Elsewhere psi(-x) = -psi(x), so that f can tell
    before from behind, and max(L, i) is max(L, i, j), which keeps the quotient within -1 and 1;
    under a causal mask both are the paper's. Cross-attention has an f of its own, where i counts
    target and j source positions. The output has no number of its own added, which softmax would
    not see.
    """

    name: ClassVar[str] = "fire"
    default_sharing: ClassVar[Optional[str]] = "none"

    def in_attention(self, shape: AttentionShape) -> FireBias:
        return FireBias(shape, self.sharing)
