"""``diet-mt theorems``: ranks and gradients; and sums and concatenations at the input."""

from __future__ import annotations

import runpy

import pytest
import torch
import torch.nn.functional as F

from ..commands.runner import ROOT
from ..processes import called

CONCATENATION = runpy.run_path(str(ROOT / "results" / "figures" / "concatenation.py"))


def test_the_report_on_draws(capsys: pytest.CaptureFixture[str]) -> None:
    assert called("theorems") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[-2:] for line in lines if "W_K^T" in line] == [
        ["32", "32"], ["80", "80"], ["80", "80"], ["96", "96"]
    ]  # fmt: skip
    (difference,) = [float(line[line.index("by") + 1]) for line in lines if "differ" in line]
    assert difference < 1e-12
    low, high = next((float(line[-3]), float(line[-1])) for line in lines if "cosines" in line)
    assert -0.9 < low < high < 0.9


def test_a_sum_misses_what_a_concatenation_has() -> None:
    words, positions = torch.randn(300, 4).double(), torch.randn(300, 2).double()
    more = torch.randn(300, 4).double(), torch.randn(300, 2).double()
    wanted = (positions * more[1]).sum(1)
    concatenated = [torch.cat(pair, 1) for pair in ((words, positions), more)]
    assert CONCATENATION["missed"](*concatenated, wanted) < 1e-12
    added = [first + F.pad(second, (1, 1)) for first, second in ((words, positions), more)]
    assert CONCATENATION["missed"](*added, wanted) > 0.1


def test_columns_that_words_and_positions_share() -> None:
    words = torch.diag(torch.tensor([3.0, 4, 0, 0])).double()
    places = torch.randn(9, 1).double()
    apart = torch.cat([torch.zeros(9, 3), places], 1)
    upon = torch.cat([torch.zeros(9, 1), places, torch.zeros(9, 2)], 1)
    shared_columns = CONCATENATION["shared_columns"]
    assert shared_columns(words, apart) == (pytest.approx(0), 1)
    centred = words.numpy() - words.numpy().mean(0)
    share = (centred[:, 1] ** 2).sum() / (centred**2).sum()
    assert shared_columns(words, upon) == (pytest.approx(share), 1)
