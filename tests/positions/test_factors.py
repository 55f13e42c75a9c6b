"""Biases of two factors, DIET-ABS and TUPE."""

from __future__ import annotations

import pytest
import torch

from diet_mt.nn.precision import product
from diet_mt.positions import CROSS, ENCODER, AttentionShape, build_position, factors
from diet_mt.positions.diet import DietAbsBias
from diet_mt.positions.factors import STORED
from diet_mt.positions.tupe import TupeBias

from ..toy import sharing_modes

L, H, S, D, R = 2, 3, 7, 4, 6
SHAPE = AttentionShape(L, H, D, 9, 11, CROSS)
ROUNDING = 1e-12  # float64


def biases(sharing: str) -> list[DietAbsBias | TupeBias]:
    both: list[DietAbsBias | TupeBias] = [DietAbsBias(SHAPE, sharing, R), TupeBias(SHAPE, sharing)]
    for bias in both:
        for parameter in bias.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
    return [bias.double() for bias in both]


@pytest.mark.parametrize("sharing", sharing_modes("diet-abs"))
def test_a_model_prepared_for_inference_computes_the_product_once(
    sharing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is too large, and not for other weights, other precisions, or gradients."""
    counted: list[tuple[int, ...]] = []

    def counting(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        counted.append((query.size(-2), key.size(-2)))
        return product(query, key)

    monkeypatch.setattr(factors, "product", counting)
    for bias in biases(sharing):
        calls = [(range(3), range(2)), (range(1, 4), range(S)), (range(2, 5), range(8))]
        with torch.no_grad():
            expected = [bias(*call).clone() for call in calls]
            bias.make_generation_fast_(name="encoder")
            counted.clear()
            for call, own in zip(calls, expected, strict=True):
                torch.testing.assert_close(bias(*call), own, rtol=0, atol=ROUNDING)
            assert counted == [(9, 11)]
            assert bias.float()(*calls[0]).dtype == torch.float32
            bias.load_state_dict({name: 2 * each for name, each in bias.state_dict().items()})
            assert not torch.allclose(bias(*calls[0]), expected[0].float())
        assert bias(*calls[0]).requires_grad
        assert counted == [(9, 11), (9, 11), (9, 11), (3, 2)]
        monkeypatch.setattr(factors, "STORED", 9 * 11)
        with torch.no_grad():
            bias(*calls[0])
        assert counted[4:] == [(3, 2)]
        monkeypatch.setattr(factors, "STORED", STORED)


WITH_CLS = AttentionShape(L, H, D, 9, 9, ENCODER, first_is_cls=True)


def test_cls_of_tupe_is_untied_wherever_it_stands() -> None:
    bias = build_position("tupe-rel", buckets=8, max_distance=6).attention_positions(WITH_CLS)
    assert bias is not None
    some = torch.tensor([2, 3, 6, 7])  # of [CLS], 2
    drawn, whole, first = (bias(at, at) for at in (some, range(9), range(4)))
    assert torch.equal(drawn[..., 1:, 1:], whole[..., some, :][..., some][..., 1:, 1:])
    assert torch.equal(drawn[..., 0, :], first[..., 0, :])
    assert torch.equal(drawn[..., 0], first[..., 0])
    # Rows behind [CLS] are those of the whole.
    torch.testing.assert_close(bias(range(2, 5), range(S)), bias(range(5), range(S))[..., 2:, :])
