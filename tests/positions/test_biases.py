"""ALiBi's trained slopes, KERPLE's rates, and FIRE up to its length and beyond."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from diet_mt.positions import CROSS, DECODER, ENCODER, AttentionShape, create
from diet_mt.positions.decay import LEAST, KerpleBias
from diet_mt.positions.fire import FireBias

from .. import oracle
from ..toy import sharing_modes
from .cases import CASES

L, H, D = 2, 3, 4
SHAPE = AttentionShape(L, H, D, 9, 11)
ROUNDING = 1e-12  # float64


@pytest.mark.parametrize(
    ("kind", "slope", "offset"),
    [
        (ENCODER, [-2, -1, -0.5, -0.25, *[-0.05] * 6], [1, -2, 3, -4, 5, -6, 7, -8, 0, 0]),
        (DECODER, [-(2 ** (-0.8 * number)) for number in range(1, 11)], [0] * 10),
        (CROSS, [-0.1] * 10, [0.3] * 10),
    ],
)
def test_trained_slopes_start_where_those_of_marian_do(
    kind: str, slope: list[float], offset: list[float]
) -> None:
    """``initSlopes`` and ``initBiases`` of its src/layers_new/alibi.h, for ten heads."""
    bias = create("alibi", trained_slopes=True, heads=10, head_dim=D, max_length=9, kind=kind)
    values = {name: value.flatten().tolist() for name, value in bias.named_parameters()}
    assert values["shared.slope"] == pytest.approx(slope)
    assert values["shared.offset"] == pytest.approx(offset)


any_kernel = pytest.mark.parametrize("kernel", ["log", "power"])


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
    """However far a step of the optimizer goes; and gradients stay finite, also at distance 0."""
    bias = KerpleBias(SHAPE, "none", kernel).double()
    for parameter in bias.parameters():
        nn.init.constant_(parameter, value)
    row = bias(range(8, 9), range(9))[0, 0, 0]
    assert torch.isfinite(row).all()
    assert (row.diff() >= 0).all()
    assert row[-1] == 0
    row.sum().backward()
    for parameter in bias.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


def fire(sharing: str, threshold: float) -> FireBias:
    """In float64, L at ``threshold`` tokens in layer 0 and at twice as many in layer 1."""
    bias = FireBias(SHAPE, sharing).double()
    for number, table in enumerate(bias.tables()):
        # The sign is free.
        nn.init.constant_(table.get_parameter("threshold"), -(number + 1) * threshold / 512)
        nn.init.constant_(table.get_parameter("c"), 0.3 + number)
    return bias


# Below the length of the sentences, and above: then all depends on the distance alone.
any_threshold = pytest.mark.parametrize("threshold", [3.0, 100.0])


@any_threshold
@pytest.mark.parametrize(
    ("start", "queries", "keys"), [(0, 5, 7), (0, 7, 5), (4, 5, 7), (0, 1, 1), (8, 1, 9)]
)
@pytest.mark.parametrize("sharing", sharing_modes("fire"))
def test_fire_up_to_its_length_and_beyond(
    sharing: str, threshold: float, start: int, queries: int, keys: int
) -> None:
    bias = fire(sharing, threshold)
    out = bias(range(start, start + queries), range(keys))
    heads = 1 if sharing == "head-wise" else H
    assert out.shape == (len(bias.tables()), heads, queries, keys)
    raw = {name: value.detach().numpy() for name, value in bias.state_dict().items()}
    for layer in range(out.size(0)):
        setting = oracle.Setting("encoder", layer, H, D, 11, sharing, raw, {})
        equations = CASES["fire"].equations(setting)
        expected = [
            [[equations.logit(h, start + i, j) for j in range(keys)] for i in range(queries)]
            for h in range(heads)
        ]
        by_hand = torch.tensor(expected, dtype=torch.float64)
        torch.testing.assert_close(out[layer], by_hand, rtol=0, atol=ROUNDING)


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


@any_threshold
def test_fire_under_a_causal_mask_is_the_listing_of_the_paper(threshold: float) -> None:
    bias = fire("none", threshold)
    out = bias(range(9), range(9))
    seen = torch.ones(9, 9).tril().bool()
    for layer, table in enumerate(bias.tables()):
        expected = listing(table, 9)
        torch.testing.assert_close(out[layer][:, seen], expected[:, seen], rtol=0, atol=ROUNDING)
    out.square().sum().backward()
    for name, parameter in bias.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad.any(), name


def test_initial_values_of_fire() -> None:
    for table in FireBias(SHAPE, "none").tables():
        assert table.get_parameter("c").item() == pytest.approx(0.1)
        assert table.get_parameter("threshold").item() == 1  # 512 tokens
        assert table.get_parameter("hidden_weight").abs().max() <= 1
        assert table.get_parameter("out").abs().max() <= 32**-0.5
