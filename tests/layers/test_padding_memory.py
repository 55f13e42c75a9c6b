"""Padding costs next to no memory: a bias serves all sentences, whatever their padding."""

from __future__ import annotations

import runpy

import pytest
import torch
from torch import Tensor, nn

from ..commands.runner import ROOT

SCRIPT = runpy.run_path(str(ROOT / "results" / "padding_memory" / "measure.py"))
kept_for_backward, peak_of_forward = SCRIPT["kept_for_backward"], SCRIPT["peak_of_forward"]


@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs"])
def test_a_batch_with_padding_takes_at_most_5_percent_more(encoding: str) -> None:
    bytes_of = SCRIPT["measure"](encoding, {**SCRIPT["SIZES"], "layers": 2})
    for name, size in bytes_of["unpadded"].items():
        assert bytes_of["padded"][name] <= 1.05 * size, name


class _Layer(nn.Module):
    """Two products and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(16))

    def forward(self, tokens: Tensor) -> dict[str, list[Tensor]]:
        values = tokens.float()
        return {"encoder_out": [(values * self.factor) * self.factor.expand(8, 16) + self.factor]}


def test_what_is_kept_is_counted_once_and_without_parameters() -> None:
    tokens = torch.zeros(8, 16, dtype=torch.long)
    # Of the two products each keeps its left side.
    assert kept_for_backward(_Layer(), tokens) == 2 * 8 * 16 * 4


def test_the_peak_is_that_of_all_that_is_held_at_a_time() -> None:
    tokens = torch.zeros(8, 16, dtype=torch.long)
    # The values, the first product and the second one beside it; the first is freed then.
    assert peak_of_forward(_Layer(), tokens) == 3 * 8 * 16 * 4
