"""How fast the pairs of columns of rotary turn, and how to slow them for longer sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

BASE = 10000.0
SCALINGS = ("linear", "ntk", "yarn")
# YaRN, section 3.2: pairs that turn more often than this in the length of training stay as they
# are; those that turn less than once are slowed by the whole factor.
FAST, SLOW = 32.0, 1.0


@dataclass(frozen=True)
class Scaling:
    """``scaling`` None: pair c turns by w_c = 10000^(-2c/D) a position. Slower by ``factor`` s:

    - ``linear``: w_c / s, position interpolation (Chen et al. 2023, arXiv:2306.15595, equation 4);
    - ``ntk``: (10000 s^(D/(D-2)))^(-2c/D), the first pair as ever, the last s times slower ("NTK
      aware", as in section 3.1 of YaRN);
    - ``yarn``: Peng et al. 2023 (arXiv:2309.00071), section 3.2 and 3.3: w_c where a pair turns 32
      times or more in the length of training (``trained_length``, in tokens), w_c / s where once or
      less, a ramp between them; queries and keys are longer by 0.1 ln s + 1.

    Where we differ from the equations of YaRN, with the authors' code and ``transformers``: the
    ramp is linear in the number of the pair rather than in that of its turns, from and to whole
    numbers.
    """

    scaling: Optional[str] = None
    factor: float = 1.0
    trained_length: int = 1

    def speeds(self, head_dim: int, device: Optional[torch.device] = None) -> Tensor:
        """Angle of a position for each of the D/2 pairs, (D/2,) in float64."""
        pair = torch.arange(0, head_dim, 2, dtype=torch.float64, device=device) / head_dim
        if self.scaling == "ntk":
            # A single pair is the fastest, which stays.
            stretch: float = self.factor ** (head_dim / max(head_dim - 2, 1))
            return torch.pow(BASE * stretch, -pair)
        speed = torch.pow(BASE, -pair)
        if self.scaling == "linear":
            return speed / self.factor
        if self.scaling == "yarn":
            slowed = self.ramp(head_dim, device)
            return speed * (1 - slowed) + speed / self.factor * slowed
        return speed

    def ramp(self, head_dim: int, device: Optional[torch.device] = None) -> Tensor:
        """YaRN: how much of the slowing each pair gets, from 0 to 1, (D/2,)."""

        def pair_that_turns(times: float) -> float:
            """The number of the pair, maybe between two, that turns so often in training."""
            wavelength = self.trained_length / times
            return head_dim * math.log(wavelength / (2 * math.pi)) / (2 * math.log(BASE))

        first = max(math.floor(pair_that_turns(FAST)), 0)
        last = max(min(math.ceil(pair_that_turns(SLOW)), head_dim - 1), first)
        width = last - first or 0.001  # of no pair: a step, as in transformers
        pair = torch.arange(head_dim // 2, dtype=torch.float64, device=device)
        return ((pair - first) / width).clamp(0, 1)

    def attention_factor(self) -> float:
        """By how much queries and keys become longer."""
        return 0.1 * math.log(self.factor) + 1 if self.scaling == "yarn" else 1.0
