"""Products of two factors: a table for short sentences, the factors themselves for long."""

from __future__ import annotations

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.positions import CROSS, AttentionShape, LayerPositions, factors
from diet_mt.positions.diet_abs import DietAbsBias
from diet_mt.positions.factors import APPEND_FROM, FactorPositions, appended, product
from diet_mt.positions.tupe import TupeBias

from ..toy import sharing_modes

L, H, T, S, D, R = 2, 3, 5, 7, 4, 6
SHAPE = AttentionShape(L, H, D, 9, 11, CROSS)


def biases(sharing: str) -> list[DietAbsBias | TupeBias]:
    both: list[DietAbsBias | TupeBias] = [
        DietAbsBias(SHAPE, sharing, R),
        TupeBias(SHAPE, sharing),
    ]
    for bias in both:
        for parameter in bias.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
    return [bias.double() for bias in both]


def test_two_queries_over_three_keys_by_hand() -> None:
    query, key = torch.tensor([[[[1.0, 2], [3, 0]]]]), torch.tensor([[[[1.0, 0], [0, 1], [2, 1]]]])
    assert product(query, key).tolist() == [[[[1, 2, 4], [3, 0, 6]]]]


@pytest.mark.parametrize("heads", [1, H])
@pytest.mark.parametrize(("of_query", "of_key"), [(1, 1), (L, 1), (1, L), (L, L)])
def test_either_factor_may_be_shared_by_the_layers(of_query: int, of_key: int, heads: int) -> None:
    query = torch.randn(of_query, heads, T, R, dtype=torch.float64)
    key = torch.randn(of_key, heads, S, R, dtype=torch.float64)
    table, parts = product(query, key), appended(query, key)
    assert len(parts) == len(table) == max(of_query, of_key)
    for part, expected in zip(parts, table, strict=True):
        assert part.bias is None
        pair = part.factors()
        assert pair is not None
        found = pair[0] @ pair[1].transpose(-1, -2)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_autocast_leaves_the_product_in_float32() -> None:
    query, key = torch.randn(L, H, T, R), torch.randn(L, H, S, R)
    exact = product(query, key)
    with torch.autocast("cpu", torch.bfloat16):
        cast = product(query, key)
    assert cast.dtype == torch.float32
    assert torch.equal(cast, exact)


@pytest.mark.parametrize("sharing", sharing_modes("diet-abs"))
def test_both_ways_say_the_same(sharing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bias in biases(sharing):
        tables = bias.for_layers(range(T), range(S))
        monkeypatch.setattr(factors, "APPEND_FROM", 1)
        pairs = bias.for_layers(range(T), range(S))
        monkeypatch.setattr(factors, "APPEND_FROM", APPEND_FROM)
        assert len(tables) == len(pairs) == L
        for table, part in zip(tables, pairs, strict=True):
            pair = part.factors()
            assert table.bias is not None
            assert pair is not None
            found = pair[0] @ pair[1].transpose(-1, -2)
            torch.testing.assert_close(found, table.bias, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("queries", "keys", "appends"), [(6, 6, True), (9, 11, True), (5, 6, False), (6, 5, False)]
)
def test_the_path_is_chosen_by_size(
    monkeypatch: pytest.MonkeyPatch, queries: int, keys: int, appends: bool
) -> None:
    """Both lengths must be long: a decoding step, one query, never appends."""
    monkeypatch.setattr(factors, "APPEND_FROM", 6)
    for bias in biases("none"):
        for part in bias.for_layers(range(queries), range(keys)):
            assert (part.bias is None) == appends
            assert type(part) is (FactorPositions if appends else LayerPositions)
            pair = part.factors()
            assert (pair is not None) == appends
            if pair is not None:
                assert [factor.shape[:2] for factor in pair] == [(H, queries), (H, keys)]


def test_a_step_gets_the_row_of_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 6)
    for bias in biases("none"):
        queries, keys = bias.factors(range(5, 6), range(7))
        for layer, part in enumerate(bias.for_layers(range(2, 8), range(8))):
            step = part.step(3, 7)
            pair = step.factors()
            assert type(step) is FactorPositions
            assert pair is not None
            for found, expected in zip(pair, (queries[layer], keys[layer]), strict=True):
                assert found.shape == expected.shape
                torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("start", "queries", "keys"), [(0, 10, 11), (4, 6, 11), (0, 6, 12)])
def test_positions_beyond_the_tables_are_refused_on_both_paths(
    monkeypatch: pytest.MonkeyPatch, start: int, queries: int, keys: int
) -> None:
    bias = DietAbsBias(SHAPE, "none", R)
    for threshold in (1, 1000):
        monkeypatch.setattr(factors, "APPEND_FROM", threshold)
        with pytest.raises(UserError, match=r"--max-source-positions.*--max-target-positions"):
            bias.for_layers(range(start, start + queries), range(keys))
