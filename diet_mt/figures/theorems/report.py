"""All sections of ``diet-mt theorems``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from ...blocks import text
from ...evaluation.fairseq_options import quiet
from ..observed import open_systems
from .concatenation import columns_of_checkpoints, sum_and_concatenation
from .draws import Sizes
from .gradients import gradients_of_checkpoints, theorem_2
from .rank import ranks_of_checkpoints, theorem_1


def report(
    checkpoints: Sequence[Path], data: Path | None, subset: str, tokens: int, seed: int
) -> str:
    """All sections, for a terminal. Raises UserError for checkpoints that cannot be loaded."""
    quiet()
    systems = open_systems(checkpoints, data) if data is not None else []
    generator, sizes = torch.Generator().manual_seed(seed), Sizes()
    blocks = [
        *theorem_1(sizes, generator),
        *ranks_of_checkpoints(systems, subset, tokens),
        *theorem_2(sizes, generator),
        *gradients_of_checkpoints(systems, subset),
        *sum_and_concatenation(generator),
        *columns_of_checkpoints(systems),
    ]
    return text(blocks)
