"""Biases of two factors, DIET-ABS and TUPE, and keys projected by Linformer."""

from __future__ import annotations

import pytest
import torch

from diet_mt.nn.precision import product
from diet_mt.positions import (
    CROSS,
    ENCODER,
    AttentionShape,
    PositionTerms,
    build_position,
    factors,
)
from diet_mt.positions.diet import DietAbsBias
from diet_mt.positions.factors import STORED, FactorTerms, append_factors
from diet_mt.positions.linformer import DietAbsLinPositions, LinformerTerms
from diet_mt.positions.tupe import TupeBias

from ..toy import sharing_modes

L, H, T, S, D, R, K = 2, 3, 5, 7, 4, 6, 5
SHAPE = AttentionShape(L, H, D, 9, 11, CROSS)
ROUNDING = 1e-12  # float64


def biases(sharing: str) -> list[DietAbsBias | TupeBias]:
    both: list[DietAbsBias | TupeBias] = [DietAbsBias(SHAPE, sharing, R), TupeBias(SHAPE, sharing)]
    for bias in both:
        for parameter in bias.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
    return [bias.double() for bias in both]


def product_of(terms: PositionTerms) -> torch.Tensor:
    pair = terms.factors()
    assert pair is not None
    assert terms.bias is None
    return pair[0] @ pair[1].transpose(-1, -2)


@pytest.mark.parametrize("heads", [1, H])
@pytest.mark.parametrize(("of_query", "of_key"), [(1, 1), (L, 1), (1, L), (L, L)])
def test_either_factor_may_be_shared_by_the_layers(of_query: int, of_key: int, heads: int) -> None:
    query = torch.randn(of_query, heads, T, R, dtype=torch.float64)
    key = torch.randn(of_key, heads, S, R, dtype=torch.float64)
    bias, terms = product(query, key), append_factors(query, key)
    assert len(terms) == len(bias) == max(of_query, of_key)
    for one, expected in zip(terms, bias, strict=True):
        torch.testing.assert_close(product_of(one), expected, rtol=0, atol=ROUNDING)


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


@pytest.mark.parametrize(
    ("queries", "keys", "appends"), [(6, 6, True), (9, 11, True), (5, 6, False), (6, 5, False)]
)
def test_the_path_is_chosen_by_size(
    monkeypatch: pytest.MonkeyPatch, queries: int, keys: int, appends: bool
) -> None:
    """Both lengths must be long: a decoding step, one query, never appends."""
    monkeypatch.setattr(factors, "APPEND_FROM", 6)
    for bias in biases("none"):
        for terms in bias.for_layers(range(queries), range(keys)):
            assert (terms.bias is None) == (terms.factors() is not None) == appends
            assert type(terms) is (FactorTerms if appends else PositionTerms)


def test_a_step_gets_the_row_of_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 6)
    for bias in biases("none"):
        queries, keys = bias.factors(range(5, 6), range(7))
        for layer, terms in enumerate(bias.for_layers(range(2, 8), range(8))):
            step = terms.step(3, 7)
            assert step.factors() is None
            expected = queries[layer] @ keys[layer].transpose(-1, -2)
            torch.testing.assert_close(step.bias, expected, rtol=0, atol=ROUNDING)


def test_products_of_half_precision_are_summed_in_float32() -> None:
    """4096 and 32 times 1/64: half precision has steps of 4 there."""
    bias = DietAbsBias(AttentionShape(1, 1, D, 2, 2), "none", 33).half()
    with torch.no_grad():
        for table in bias.parameters():
            table.fill_(0.125)
            table[..., 0] = 64.0
    assert bias(range(2), range(2)).unique().tolist() == [4096.5]


def test_positions_in_the_logits_raise_the_rank_to_the_sum() -> None:
    """Theorem 1 of the paper: heads of 3, factors of rank 4, words of width 8."""
    bias = build_position("diet-abs", rank=4).attention_positions(AttentionShape(1, 1, 3, 10, 10))
    assert bias is not None
    words, (w_q, w_k) = torch.randn(10, 8).double(), torch.randn(2, 8, 3).double()
    logits = words @ w_q @ (words @ w_k).T
    # From the initial 0.0004 to the size of q . k.
    position = bias.double()(range(10), range(10))[0, 0] * 1e4
    ranks = [int(torch.linalg.matrix_rank(x)) for x in (logits, position, logits + position)]
    assert ranks == [3, 4, 7]


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


def test_initial_norms_and_sources_of_tupe() -> None:
    bias = TupeBias(AttentionShape(1, 8, 16, 256, 256, CROSS), "none")
    assert bias.sources is not None
    assert bias.sources.weight.std().item() == pytest.approx(0.02, rel=0.03)
    for positions in (bias.positions, bias.sources):
        assert positions.norm.weight.unique().tolist() == [1.0]
        assert positions.norm.bias.unique().tolist() == [0.0]


@pytest.mark.parametrize(("rank", "width"), [(None, D), (R, R)])
def test_the_rank_over_mixed_keys_is_the_head_size_by_default(rank: int | None, width: int) -> None:
    shape = AttentionShape(L, H, D, 3, 3)
    positions = build_position("diet-abs-lin", rank=rank, projected=K).attention_positions(shape)
    assert isinstance(positions, DietAbsLinPositions)
    for name in ("query", "key"):
        assert positions.mixed.tables()[0].get_parameter(name).size(-1) == width
    # k is not a number of positions: sentences of 2 tokens have 5 mixtures as well.
    bias = positions.for_layers(range(2), range(2))[0].bias
    assert bias is not None
    assert bias.shape == (H, 2, K)


@pytest.mark.parametrize("sharing", sharing_modes("diet-abs-lin"))
def test_mixed_keys_have_a_bias_at_every_length(
    sharing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where DIET-ABS would append its factors; rows of later queries are those of the whole."""
    positions = DietAbsLinPositions(AttentionShape(L, H, D, 11, 11), sharing, K, R)
    whole = positions.for_layers(range(S), range(S))
    monkeypatch.setattr(factors, "APPEND_FROM", 1)
    for terms, expected in zip(positions.for_layers(range(2, S), range(S)), whole, strict=True):
        assert terms.bias is not None
        assert expected.bias is not None
        assert torch.equal(terms.bias, expected.bias[:, 2:])


def test_padding_is_not_mixed() -> None:
    """The third token of the first sentence is padding: it may hold anything."""
    shares = torch.tensor([[[1.0, 1], [1, 0], [1, -1]]])
    padding = torch.tensor([[False, False, True], [False, False, False]])
    terms = LinformerTerms(of_keys=shares, of_values=2 * shares)
    x = torch.tensor([[10.0, 20, 999], [10, 20, 30]]).view(2, 1, 3, 1)
    assert terms.keys(x, padding).flatten(1).tolist() == [[30, 10], [60, -20]]
    assert terms.values(x, padding).flatten(1).tolist() == [[60, 20], [120, -40]]
    # Over the mixtures nothing is left to mask.
    assert terms.mixes_keys
