"""Products of two factors: a table for short sentences, further columns of q and k for long."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.errors import UserError
from diet_mt.positions import CROSS, AttentionShape, Term, factors
from diet_mt.positions.diet_abs import DietAbsBias
from diet_mt.positions.factors import FactorBias, FactorTerm
from diet_mt.positions.tupe import TupeBias

from ..toy import sharing_modes

B, L, H, T, S, D, R = 2, 2, 3, 5, 7, 4, 6
SHAPE = AttentionShape(L, H, D, 9, 11, CROSS)
SCALE = 0.3
INF = float("inf")


def biases(sharing: str) -> list[FactorBias]:
    both: list[FactorBias] = [DietAbsBias(SHAPE, sharing, R), TupeBias(SHAPE, sharing)]
    for bias in both:
        for parameter in bias.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
    return [bias.double() for bias in both]


def appended(bias: FactorBias, layer: int, offsets: Tensor | None = None) -> FactorTerm:
    """The term of a layer where the factors are appended."""
    query, key = (stack[0 if stack.size(0) == 1 else layer] for stack in bias.factors(0, T, S))
    return FactorTerm(offsets=offsets, query_len=T, query_factor=query, key_factor=key)


def random_qk(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    return torch.randn(B, H, T, D, dtype=dtype), torch.randn(B, H, S, D, dtype=dtype)


@pytest.mark.parametrize("sharing", sharing_modes("diet-abs"))
def test_widened_products_are_the_logits(sharing: str) -> None:
    q, k = random_qk()
    for bias in biases(sharing):
        table = bias(0, T, S)
        for layer in range(L):
            wide_q, wide_k, scale = appended(bias, layer).widened(q, k, SCALE)
            logits = scale * wide_q @ wide_k.transpose(-1, -2)
            expected = SCALE * q @ k.transpose(-1, -2) + table[0 if len(table) == 1 else layer]
            torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)
            # Fused kernels want head sizes that are multiples of 8.
            assert wide_q.size(-1) == wide_k.size(-1)
            assert wide_q.size(-1) % 8 == 0


def test_padding_is_a_column_of_the_keys() -> None:
    closed = torch.zeros(B, 1, 1, S, dtype=torch.float64)
    closed[1, ..., 4:] = -INF
    q, k = random_qk()
    (bias, _) = biases("none")
    term = appended(bias, 1, closed)
    assert term.mask() is None
    wide_q, wide_k, scale = term.widened(q, k, SCALE)
    found = torch.softmax(scale * wide_q @ wide_k.transpose(-1, -2), dim=-1)
    logits = SCALE * q @ k.transpose(-1, -2) + bias(0, T, S)[1] + closed
    torch.testing.assert_close(found, torch.softmax(logits, dim=-1), rtol=0, atol=1e-12)
    assert not found[1, ..., 4:].any()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_the_padding_column_stays_finite_in_half_precision(kind: torch.dtype) -> None:
    """-inf times the zeros of other columns would be no number."""
    closed = torch.zeros(B, 1, 1, S)
    closed[1, ..., 4:] = -INF
    q, k = random_qk(kind)
    (bias, _) = biases("none")
    wide_q, wide_k, scale = appended(bias.to(kind), 0, closed).widened(q, k, SCALE)
    assert wide_q.dtype == wide_k.dtype == kind
    assert wide_k.isfinite().all()
    shares = torch.softmax(scale * (wide_q @ wide_k.transpose(-1, -2)).float(), dim=-1)
    assert shares.isfinite().all()
    assert not shares[1, ..., 4:].any()


def test_widened_has_no_gradient_through_the_padding() -> None:
    closed = torch.full((B, 1, 1, S), -INF, dtype=torch.float64)
    closed[..., 0] = 0.0
    q, k = (x.requires_grad_() for x in random_qk())
    (bias, _) = biases("none")
    wide_q, wide_k, scale = appended(bias, 0, closed).widened(q, k, SCALE)
    torch.softmax(scale * wide_q @ wide_k.transpose(-1, -2), dim=-1)[..., 0].sum().backward()
    for x in (q, k, *bias.parameters()):
        assert x.grad is not None
        assert x.grad.isfinite().all()


@pytest.mark.parametrize(
    ("queries", "keys", "appends"), [(6, 6, True), (9, 11, True), (5, 6, False), (6, 5, False)]
)
def test_the_path_is_chosen_by_size(
    monkeypatch: pytest.MonkeyPatch, queries: int, keys: int, appends: bool
) -> None:
    """Both lengths must be long: a decoding step, one query, never appends."""
    monkeypatch.setattr(factors, "APPEND_FROM", 6)
    for bias in biases("none"):
        terms = bias.terms(0, queries, keys)
        assert (terms.bias is None) == appends
        assert terms.kind is (FactorTerm if appends else Term)
        if appends:
            assert {name: tuple(x.shape[:3]) for name, x in terms.tensors.items()} == {
                "query_factor": (L, H, queries),
                "key_factor": (L, H, keys),
            }


def test_a_step_gets_the_row_of_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 6)
    for bias in biases("none"):
        step = bias.terms(2, 6, 8).step(3, 8)
        alone = bias.factors(5, 1, 8)
        for found, expected in zip(step.tensors.values(), alone, strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("start", "queries", "keys"), [(0, 10, 11), (4, 6, 11), (0, 6, 12)])
def test_positions_beyond_the_tables_are_refused_on_both_paths(
    monkeypatch: pytest.MonkeyPatch, start: int, queries: int, keys: int
) -> None:
    bias = DietAbsBias(SHAPE, "none", R)
    for threshold in (1, 1000):
        monkeypatch.setattr(factors, "APPEND_FROM", threshold)
        with pytest.raises(UserError, match=r"--max-source-positions.*--max-target-positions"):
            bias.terms(start, queries, keys)
