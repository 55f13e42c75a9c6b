"""TUPE: normed positions meet through projections of their own."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import CROSS, ENCODER, AttentionShape
from diet_mt.positions.base import INIT_STD
from diet_mt.positions.tupe import TupeAbs, TupeBias, TupeRel

L, H, T, S, D = 2, 3, 5, 7, 4
N_T = 9
SHAPE = AttentionShape(L, H, D, N_T, N_T)


def test_self_attention_by_hand() -> None:
    """One head of size 2. The norm makes (-1, 1) of (1, 3), and (1, -1) of (5, 1)."""
    bias = TupeBias(AttentionShape(1, 1, 2, 2, 2), "none").double()
    (table,) = bias.tables()
    with torch.no_grad():
        bias.positions.weight.copy_(torch.tensor([[1.0, 3], [5, 1]]))
        table.get_parameter("query").copy_(torch.tensor([[[1.0, 2], [3, 4]]]))
        table.get_parameter("key").copy_(torch.tensor([[[1.0, 0], [0, 3]]]))
    # p U_Q is (2, 2) and (-2, -2), p U_K (-1, 3) and (1, -3): products 4 and -4, over sqrt(4).
    by_hand = torch.tensor([[2.0, -2], [-2, 2]]).double()
    # The norm's epsilon, 1e-5 against variances of 1 and 4.
    torch.testing.assert_close(bias(range(2), range(2))[0, 0], by_hand, rtol=0, atol=3e-5)


WITH_CLS = AttentionShape(L, H, D, N_T, N_T, ENCODER, first_is_cls=True)


def test_cls_is_untied_wherever_it_stands() -> None:
    bias = TupeRel(buckets=8, max_distance=6).attention_positions(WITH_CLS)
    some = torch.tensor([2, 3, 6, 7])  # of [CLS], 2
    found, whole, untied = (bias(at, at) for at in (some, range(N_T), range(4)))
    assert torch.equal(found[..., 1:, 1:], whole[..., some, :][..., some][..., 1:, 1:])
    assert torch.equal(found[..., 0, :], untied[..., 0, :])
    assert torch.equal(found[..., 0], untied[..., 0])


def test_rows_behind_cls_are_those_of_the_whole() -> None:
    bias = TupeRel(buckets=8, max_distance=6).attention_positions(WITH_CLS)
    assert isinstance(bias, TupeBias)
    torch.testing.assert_close(bias(range(2, 5), range(S)), bias(range(5), range(S))[..., 2:, :])


@pytest.mark.parametrize("encoding", [TupeAbs(), TupeRel()], ids=lambda encoding: encoding.name)
def test_half_precision_rounds_the_weights_alone(encoding: TupeAbs | TupeRel) -> None:
    """Norm, projections and products are float32 sums over the rounded weights."""
    for kind in (torch.float16, torch.bfloat16):
        half = encoding.attention_positions(SHAPE).to(kind)
        full = encoding.attention_positions(SHAPE)
        full.load_state_dict(half.state_dict())
        out = half(range(T), range(S))
        assert out.dtype == torch.float32
        assert torch.equal(out, full(range(T), range(S)))


def test_autocast_leaves_the_products_in_float32() -> None:
    bias = TupeBias(SHAPE, "none")
    exact = bias(range(T), range(S))
    with torch.autocast("cpu", torch.bfloat16):
        cast = bias(range(T), range(S))
    assert cast.dtype == torch.float32
    assert torch.equal(cast, exact)


def test_initial_values() -> None:
    """Tables and projections as in BERT; a norm that only norms."""
    bias = TupeBias(AttentionShape(1, 8, 16, 256, 256, CROSS), "none")
    assert bias.sources is not None
    (table,) = bias.tables()
    drawn = [bias.positions.weight, bias.sources.weight, *table.parameters()]
    for parameter in drawn:
        # 16,384 draws at least, known to 0.6% (one deviation).
        assert parameter.std().item() == pytest.approx(INIT_STD, rel=0.03)
    for positions in (bias.positions, bias.sources):
        assert positions.norm.weight.unique().tolist() == [1.0]
        assert positions.norm.bias.unique().tolist() == [0.0]
