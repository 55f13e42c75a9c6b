"""TUPE: normed positions meet through projections of their own."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.errors import UserError
from diet_mt.positions import CROSS, DECODER, ENCODER, AttentionShape, factors
from diet_mt.positions.base import INIT_STD
from diet_mt.positions.t5 import T5Bias
from diet_mt.positions.tupe import TupeAbs, TupeBias, TupeRel

from ..toy import sharing_modes

L, H, T, S, D = 2, 3, 5, 7, 4
E, N_T, N_S = H * D, 9, 11
SHAPE = AttentionShape(L, H, D, N_T, N_T)
ACROSS = AttentionShape(L, H, D, N_T, N_S, CROSS)
# torch's layer norm adds this to the variance.
EPSILON = 1e-5


def randomised(bias: TupeBias) -> TupeBias:
    """float64, every parameter away from its initial value, the norm's scale and shift too."""
    for parameter in bias.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return bias.double()


def tupe_rel(shape: AttentionShape, sharing: str) -> TupeBias:
    """With 8 buckets of distances up to 6."""
    bias = TupeRel(sharing, 8, 6).attention_positions(shape)
    assert isinstance(bias, TupeBias)
    return bias


def assert_is_table(bias: TupeBias, place: tuple[int, int, int], table: Tensor) -> None:
    """Every layer gets its part of ``table`` (L|1, H|1, T, S), and no factors."""
    for layer, part in enumerate(bias.for_layers(*place)):
        assert part.factors() is None
        assert part.bias is not None
        assert torch.equal(part.bias, table[0 if len(table) == 1 else layer])


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
    torch.testing.assert_close(bias(0, 2, 2)[0, 0], by_hand, rtol=0, atol=3e-5)


def normed(positions: torch.nn.Module, row: int) -> list[float]:
    """Row ``row`` of p after its layer norm."""
    values = positions.get_parameter("weight")[row].tolist()
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    scale = positions.get_parameter("norm.weight").tolist()
    shift = positions.get_parameter("norm.bias").tolist()
    return [
        (value - mean) / math.sqrt(variance + EPSILON) * a + b
        for value, a, b in zip(values, scale, shift, strict=True)
    ]


def projected(vector: list[float], matrix: Tensor) -> list[float]:
    """The row vector (E,) times (E, D)."""
    columns = matrix.t().tolist()
    return [sum(a * b for a, b in zip(vector, column, strict=True)) for column in columns]


@pytest.mark.parametrize("sharing", sharing_modes("tupe-abs"))
@pytest.mark.parametrize("shape", [SHAPE, ACROSS], ids=["self", "cross"])
@pytest.mark.parametrize(("start", "queries", "keys"), [(0, T, S), (4, T, 3), (8, 1, 9), (0, 1, 1)])
def test_every_entry_equals_loops(
    sharing: str, shape: AttentionShape, start: int, queries: int, keys: int
) -> None:
    bias = randomised(TupeBias(shape, sharing))
    sources = bias.positions if bias.sources is None else bias.sources
    layers = 1 if sharing == "layer-wise" else L
    heads = 1 if sharing == "head-wise" else H
    out = bias(start, queries, keys)
    assert out.shape == (layers, heads, queries, keys)
    for layer, table in enumerate(bias.tables()):
        for h in range(heads):
            of_query, of_key = (table.get_parameter(name)[h] for name in ("query", "key"))
            q = [projected(normed(bias.positions, start + i), of_query) for i in range(queries)]
            k = [projected(normed(sources, j), of_key) for j in range(keys)]
            for i in range(queries):
                for j in range(keys):
                    dot = sum(a * b for a, b in zip(q[i], k[j], strict=True))
                    expected = dot / math.sqrt(2 * D)
                    assert out[layer, h, i, j].item() == pytest.approx(expected, abs=1e-10)


def test_cross_attention_has_positions_for_both_sides() -> None:
    bias = TupeBias(ACROSS, "none")
    assert bias.sources is not None
    assert bias.positions.weight.shape == (N_T, E)
    assert bias.sources.weight.shape == (N_S, E)
    for kind in (ENCODER, DECODER):
        assert TupeBias(AttentionShape(L, H, D, N_T, N_T, kind), "none").sources is None


@pytest.mark.parametrize("kind", [ENCODER, DECODER, CROSS])
@pytest.mark.parametrize("sharing", sharing_modes("tupe-rel"))
def test_tupe_rel_adds_the_bias_of_t5(
    monkeypatch: pytest.MonkeyPatch, kind: str, sharing: str
) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 1)
    shape = AttentionShape(L, H, D, N_T, N_S if kind == CROSS else N_T, kind)
    both, absolute, relative = (
        tupe_rel(shape, sharing).double(),
        TupeBias(shape, sharing).double(),
        T5Bias(shape, sharing, 8, 6).double(),
    )
    randomised(both)
    absolute.load_state_dict(
        {name: value for name, value in both.state_dict().items() if "relative" not in name}
    )
    assert both.relative is not None
    relative.load_state_dict(both.relative.state_dict())
    found, expected = both(2, T, S), absolute(2, T, S) + relative(2, T, S)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    # At every length as a table: buckets are no product of factors.
    assert_is_table(both, (2, T, S), found)


WITH_CLS = AttentionShape(L, H, D, N_T, N_T, ENCODER, first_is_cls=True)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("sharing", sharing_modes("tupe-abs"))
@pytest.mark.parametrize(("start", "queries", "keys"), [(0, T, S), (2, T, 3), (8, 1, 9), (0, 1, 1)])
def test_cls_is_untied(
    relative: bool, sharing: str, start: int, queries: int, keys: int, monkeypatch: Any
) -> None:
    """Equations 9 and 10: one number for all that [CLS] looks at, another for all others that look
    at it, and between the others as if there were no [CLS].
    """
    monkeypatch.setattr(factors, "APPEND_FROM", 1)

    def make(shape: AttentionShape) -> TupeBias:
        return tupe_rel(shape, sharing) if relative else TupeBias(shape, sharing)

    bias, tied = randomised(make(WITH_CLS)), make(SHAPE).double()
    assert bias.positions.weight.shape == (N_T + 2, E)
    state = bias.state_dict()
    state["positions.weight"] = state["positions.weight"][:N_T]
    tied.load_state_dict(state)
    out, plain = bias(start, queries, keys), tied(start, queries, keys)
    heads, layers = out.size(1), out.size(0)
    from_cls, to_cls = (
        torch.stack([own_product(bias, table, row, heads) for table in bias.tables()])
        for row in (N_T, N_T + 1)
    )
    assert from_cls.shape == (layers, heads)
    for i in range(queries):
        for j in range(keys):
            expected = plain[..., i, j]
            if start + i == 0:
                expected = from_cls
            elif j == 0:
                expected = to_cls
            torch.testing.assert_close(out[..., i, j], expected, rtol=0, atol=1e-10)
    # At every length as a table: it is no product of factors any more.
    assert_is_table(bias, (start, queries, keys), out)


def own_product(bias: TupeBias, table: torch.nn.Module, row: int, heads: int) -> Tensor:
    """(p U_Q) . (p U_K) / sqrt(2 D) of one row p with itself, by head: (H|1,)."""
    vector = normed(bias.positions, row)
    found = []
    for h in range(heads):
        q, k = (projected(vector, table.get_parameter(name)[h]) for name in ("query", "key"))
        found.append(sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(2 * D))
    return torch.tensor(found, dtype=torch.float64)


def test_cls_is_untied_wherever_it_stands() -> None:
    bias = TupeRel(buckets=8, max_distance=6).attention_positions(WITH_CLS)
    places = torch.tensor([2, 3, 6, 7])  # of [CLS], 2
    found, whole, untied = bias.between(places, places), bias(0, N_T, N_T), bias(0, 4, 4)
    assert torch.equal(found[..., 1:, 1:], whole[..., places, :][..., places][..., 1:, 1:])
    assert torch.equal(found[..., 0, :], untied[..., 0, :])
    assert torch.equal(found[..., 0], untied[..., 0])


def test_only_encoder_only_models_have_a_cls() -> None:
    for kind in (ENCODER, DECODER, CROSS):
        shape = AttentionShape(L, H, D, N_T, N_S if kind == CROSS else N_T, kind)
        assert TupeBias(shape, "none").positions.weight.shape == (N_T, E)


@pytest.mark.parametrize("encoding", [TupeAbs(), TupeRel()], ids=lambda encoding: encoding.name)
def test_half_precision_rounds_the_weights_alone(encoding: TupeAbs | TupeRel) -> None:
    """Norm, projections and products are float32 sums over the rounded weights."""
    for kind in (torch.float16, torch.bfloat16):
        half = encoding.attention_positions(SHAPE).to(kind)
        full = encoding.attention_positions(SHAPE)
        full.load_state_dict(half.state_dict())
        out = half(0, T, S)
        assert out.dtype == torch.float32
        assert torch.equal(out, full(0, T, S))


def test_autocast_leaves_the_products_in_float32() -> None:
    bias = TupeBias(SHAPE, "none")
    exact = bias(0, T, S)
    with torch.autocast("cpu", torch.bfloat16):
        cast = bias(0, T, S)
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


@pytest.mark.parametrize(("start", "queries", "keys"), [(0, 10, 9), (9, 1, 5), (0, 5, 10)])
def test_positions_beyond_the_tables_are_refused(start: int, queries: int, keys: int) -> None:
    for encoding in (TupeAbs(), TupeRel()):
        bias = encoding.attention_positions(SHAPE)
        with pytest.raises(UserError, match=r"--max-source-positions.*--max-target-positions"):
            bias.for_layers(start, queries, keys)


def test_defaults_of_the_schemes() -> None:
    """Layers share (section 3.2); 32 buckets up to 128, those of T5; q . k over sqrt(2 D)."""
    assert TupeAbs() == TupeAbs(sharing="layer-wise")
    assert TupeRel() == TupeRel(sharing="layer-wise", buckets=32, max_distance=128)
    for encoding in (TupeAbs(), TupeRel()):
        assert encoding.content_scale == pytest.approx(1 / math.sqrt(2), rel=1e-15)
        assert encoding.input_positions(N_S, E) is None
        for kind in (ENCODER, DECODER, CROSS):
            assert encoding.attention_positions(AttentionShape(L, H, D, 9, 11, kind)) is not None
