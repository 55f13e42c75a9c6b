"""KERPLE: a rate of fall for each head, positive whatever is learned."""

from __future__ import annotations

import math

import pytest
import torch

from diet_mt.positions import AttentionShape
from diet_mt.positions.kerple import LEAST, KerpleBias

L, H, D = 2, 3, 4
SHAPE = AttentionShape(L, H, D, 9, 11)

any_kernel = pytest.mark.parametrize("kernel", ["log", "power"])


def raw(r1: float, r2: float, kernel: str) -> tuple[float, float]:
    """What is stored for these rates."""
    return math.log(r1), math.log(r2) if kernel == "log" else -math.log(2 / r2 - 1)


def with_rates(bias: KerpleBias, r1: float, r2: float) -> KerpleBias:
    """``bias`` in float64 with the same rates everywhere."""
    bias.double()
    with torch.no_grad():
        for table in bias.tables():
            for name, value in zip(("raw_r1", "raw_r2"), raw(r1, r2, bias.kernel), strict=True):
                table.get_parameter(name).fill_(value)
    return bias


@pytest.mark.parametrize(
    ("kernel", "r1", "r2", "values"),
    [
        # -2 log(1 + 3 d): 0, -2 log 4, -2 log 7.
        ("log", 2.0, 3.0, [0.0, -2.772588722239781, -3.8918202981106265]),
        # -2 d^1.5: 0, -2, -2 * 2.828...
        ("power", 2.0, 1.5, [0.0, -2.0, -5.656854249492381]),
    ],
)
def test_three_positions_by_hand(kernel: str, r1: float, r2: float, values: list[float]) -> None:
    near, one, two = values
    by_hand = [[near, one, two], [one, near, one], [two, one, near]]
    bias = with_rates(KerpleBias(AttentionShape(1, 1, D, 3, 3), "none", kernel), r1, r2)
    expected = torch.tensor(by_hand, dtype=torch.float64)
    torch.testing.assert_close(bias(range(3), range(3))[0, 0], expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(bias(range(2, 3), range(3))[0, 0], expected[2:], rtol=0, atol=1e-14)


@any_kernel
def test_rates_start_where_those_of_the_authors_do(kernel: str) -> None:
    """From 0.01 to 2 the factor of the logarithm and the exponent, the others from 0.01 to 1."""
    (table,) = KerpleBias(AttentionShape(1, 2000, D, 9, 9), "none", kernel).tables()
    r1, raw_r2 = table.get_parameter("raw_r1").exp(), table.get_parameter("raw_r2")
    r2 = 2 * raw_r2.sigmoid() if kernel == "power" else raw_r2.exp()
    for rate, most in ((r1, 2.0 if kernel == "log" else 1.0), (r2, 1.0 if kernel == "log" else 2)):
        assert LEAST * 0.999 <= rate.min() < 0.1
        assert most * 0.95 < rate.max() <= most
        assert rate.mean().item() == pytest.approx(most / 2, rel=0.1)


@any_kernel
@pytest.mark.parametrize("value", [-30.0, 0.0, 30.0])
def test_keys_never_count_more_the_further_away(kernel: str, value: float) -> None:
    """However far a step of the optimizer goes."""
    bias = KerpleBias(SHAPE, "none", kernel).double()
    with torch.no_grad():
        for parameter in bias.parameters():
            parameter.fill_(value)
    row = bias(range(8, 9), range(9))[0, 0, 0]
    assert torch.isfinite(row).all()
    assert (row.diff() >= 0).all()
    assert row[-1] == 0


@any_kernel
def test_gradients_reach_both_rates_also_at_distance_0(kernel: str) -> None:
    bias = KerpleBias(SHAPE, "none", kernel).double()
    names, values = zip(*bias.named_parameters(), strict=True)

    def run(*given: torch.Tensor) -> torch.Tensor:
        swapped = dict(zip(names, given, strict=True))
        return torch.func.functional_call(bias, swapped, (range(4), range(5)))

    assert torch.autograd.gradcheck(run, [value.detach().requires_grad_() for value in values])


def test_far_away_distances_are_exact_in_half_precision() -> None:
    exact = KerpleBias(SHAPE, "none", "power")
    at = range(3000, 3001), range(3001)
    found = exact(*at)
    for kind in (torch.float16, torch.bfloat16):
        with torch.no_grad():
            for parameter in exact.parameters():
                parameter.copy_(parameter.to(kind))
        assert torch.equal(exact.to(kind)(*at), exact.float()(*at))
    assert found.dtype == torch.float32
