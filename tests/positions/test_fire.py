"""FIRE: a network over the distance, taken relative to the length or to L."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from diet_mt.positions import AttentionShape
from diet_mt.positions.fire import FireBias

from ..toy import sharing_modes

L, H, D = 2, 3, 4
SHAPE = AttentionShape(L, H, D, 9, 11)
ROUNDING = 1e-12  # float64

any_start = pytest.mark.parametrize(
    ("start", "queries", "keys"), [(0, 5, 7), (0, 7, 5), (4, 5, 7), (0, 1, 1), (8, 1, 9)]
)


def drawn(sharing: str, threshold: float) -> FireBias:
    """In float64, L at ``threshold`` tokens in layer 0 and at twice as many in layer 1."""
    bias = FireBias(SHAPE, sharing).double()
    with torch.no_grad():
        for number, table in enumerate(bias.tables()):
            table.get_parameter("threshold").fill_(-(number + 1) * threshold / 512)  # sign is free
            table.get_parameter("c").fill_(0.3 + number)
    return bias


def by_hand(table: nn.Module, h: int, i: int, j: int) -> float:
    c, threshold = (table.get_parameter(name).item() for name in ("c", "threshold"))
    longest = max(abs(threshold) * 512, i, j)
    x = math.log(1 + abs(c) * abs(i - j)) / (math.log(1 + abs(c) * longest) + 1e-6)
    x = math.copysign(x, i - j)
    weight, offset = (table.get_parameter(f"hidden_{name}")[0] for name in ("weight", "bias"))
    hidden = (weight * x + offset).clamp(min=0)
    return (hidden * table.get_parameter("out")[h]).sum().item()


def test_a_network_of_one_unit_by_hand() -> None:
    """f(x) = 2 max(x + 1, 0), c = 1, L = 3: psi is log(1 + x), over log 4 up to position 3."""
    bias = FireBias(AttentionShape(1, 1, D, 9, 9), "none").double()
    (table,) = bias.tables()
    with torch.no_grad():
        for parameter in table.parameters():
            parameter.zero_()
        for name, value in (("hidden_weight", 1), ("hidden_bias", 1), ("out", 2)):
            table.get_parameter(name)[0, 0] = value
        table.get_parameter("c").fill_(1)
        table.get_parameter("threshold").fill_(3 / 512)
    half, four_fifths = math.log(2) / math.log(4), math.log(5) / math.log(5)
    expected = [
        *(2, 2 * (1 - half), 2 * (1 - math.log(3) / math.log(4))),
        *(2 * (1 + half), 2, 2 * (1 - half)),
    ]
    # 1e-6 is added to the normalizer.
    assert bias(range(2), range(3))[0, 0].flatten().tolist() == pytest.approx(expected, abs=1e-5)
    # Position 4 is beyond L, and so is the normalizer: log 5.
    assert bias(range(4, 5), range(1)).item() == pytest.approx(2 * (1 + four_fifths), abs=1e-5)


@any_start
@pytest.mark.parametrize("sharing", sharing_modes("fire"))
@pytest.mark.parametrize("threshold", [3.0, 100.0])
def test_every_entry_by_layer_head_and_position(
    sharing: str, threshold: float, start: int, queries: int, keys: int
) -> None:
    """Sentences beyond L and below it, where all depends on the distance alone."""
    bias = drawn(sharing, threshold)
    out = bias(range(start, start + queries), range(keys))
    heads = 1 if sharing == "head-wise" else H
    assert out.shape == (len(bias.tables()), heads, queries, keys)
    for layer, table in enumerate(bias.tables()):
        for h in range(heads):
            for i in range(queries):
                for j in range(keys):
                    expected = by_hand(table, h, start + i, j)
                    assert out[layer, h, i, j].item() == pytest.approx(expected, abs=ROUNDING)


def listing(table: nn.Module, length: int) -> Tensor:
    """The paper's own listing (appendix) in float64, but for the number added to the output:
    (H, T, T).
    """
    mlp = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, H, bias=False)).double()
    first, last = mlp[0], mlp[2]
    with torch.no_grad():
        first.weight.copy_(table.get_parameter("hidden_weight").t())
        first.bias.copy_(table.get_parameter("hidden_bias")[0])
        last.weight.copy_(table.get_parameter("out"))
    c, threshold = table.get_parameter("c")[0, 0], table.get_parameter("threshold")[0, 0]
    positions = torch.arange(length, dtype=torch.float64)
    normalizer = torch.maximum(positions, (threshold * 512.0).abs())[:, None]
    away = torch.log((c * (positions[:, None] - positions)).abs() + 1)
    normalized = away / (torch.log((c * normalizer).abs() + 1) + 1e-6)
    return mlp(normalized.unsqueeze(-1)).permute(2, 0, 1)


@pytest.mark.parametrize("threshold", [3.0, 100.0])
def test_under_a_causal_mask_it_is_the_listing_of_the_paper(threshold: float) -> None:
    bias = drawn("none", threshold)
    out = bias(range(9), range(9))
    seen = torch.ones(9, 9).tril().bool()
    for layer, table in enumerate(bias.tables()):
        expected = listing(table, 9)
        torch.testing.assert_close(out[layer][:, seen], expected[:, seen], rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("threshold", [3.0, 100.0])
def test_gradients_reach_everything_that_learns(threshold: float) -> None:
    bias = drawn("none", threshold)
    names, values = zip(*bias.named_parameters(), strict=True)

    def run(*given: Tensor) -> Tensor:
        swapped = dict(zip(names, given, strict=True))
        return torch.func.functional_call(bias, swapped, (range(4), range(5)))

    assert torch.autograd.gradcheck(run, [value.detach().requires_grad_() for value in values])
    bias(range(9), range(9)).square().sum().backward()
    for name, parameter in bias.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad.any(), name


def test_initial_values() -> None:
    for table in FireBias(SHAPE, "none").tables():
        assert table.get_parameter("c").item() == pytest.approx(0.1)
        assert table.get_parameter("threshold").item() == 1  # 512 tokens
        assert table.get_parameter("hidden_weight").abs().max() <= 1
        assert table.get_parameter("out").abs().max() <= 32**-0.5
