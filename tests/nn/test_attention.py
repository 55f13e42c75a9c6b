"""``attend`` against loops, on all of its ways: its own, and torch's fused kernel with key padding
in a mask for each sentence or in a column of the keys.
"""

from __future__ import annotations

import copy
import math
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from diet_mt.nn import attention
from diet_mt.nn.attention import LogitTerms, attend

from .. import oracle

B, H, T, S, D, R = 2, 3, 5, 7, 4, 6
SCALE = 0.37
INF = math.inf

WAYS = ("own", "fused", "column", "weights")


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of uneven sizes, as views, which is how layers pass them."""
    q = torch.randn(T, B, H * D).unflatten(-1, (H, D)).permute(1, 2, 0, 3)
    k, v = (torch.randn(S, B, H * D).unflatten(-1, (H, D)).permute(1, 2, 0, 3) for _ in range(2))
    return q.to(dtype), k.to(dtype), v.to(dtype)


def some_padding(keys: int = S) -> Tensor:
    """(B, S): the first sentence is whole, the second ends early."""
    padding = torch.zeros(B, keys, dtype=torch.bool)
    padding[1, 3:] = True
    return padding


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def close(tensor: Tensor, expected: Tensor) -> None:
    """float64, sums of at most 7 terms of order 1: only rounding can differ."""
    torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-12)


def by_loops(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, masked: Tensor) -> tuple[Tensor, ...]:
    """Output and weights of the oracle; ``bias`` and ``masked`` broadcast to (B, H, T, S)."""
    full = bias.masked_fill(masked, -INF).numpy()
    arrays = (x.numpy() for x in (q, k, v))
    out, weights = oracle.attend(*arrays, SCALE, lambda b, h, i, j: float(full[b, h, i, j]))
    return torch.from_numpy(out), torch.from_numpy(weights)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How ``attend`` computes: the way it would choose by size must not matter."""
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: request.param in ("fused", "column"))
    if request.param == "column":
        monkeypatch.setattr(attention, "_COLUMN_FROM", 0)
    return str(request.param)


def run(way: str, *args: Tensor, scale: float = SCALE, **kwargs: Any) -> Tensor:
    """``kwargs``: the fields of ``LogitTerms`` and further arguments of ``attend``."""
    fields = {name: kwargs.pop(name) for name in list(kwargs) if name in LogitTerms.__annotations__}
    weights = way == "weights"
    return attend(*args, LogitTerms(**fields), scale=scale, need_weights=weights, **kwargs)[0]


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
def test_all_terms_equal_the_loops(way: str, padded: bool, causal: bool) -> None:
    """In every combination; and no argument is changed, since other layers read it."""
    factors = [], [(1, H, 1, 1)], [(B, 1, B, 1), (1, 1, 1, H)]
    for bias_heads, content_bias, pairs in product((None, 1, H), (False, True), factors):
        q, k, v = inputs()
        keys = T if causal else S  # under a causal mask there are as many keys as queries
        k, v = k[:, :, :keys], v[:, :, :keys]
        masked = torch.zeros(B, 1, T, keys, dtype=torch.bool)
        bias = torch.zeros(B, H, T, keys, dtype=torch.float64)
        given: dict[str, Any] = {"causal": causal}
        if causal:
            masked |= torch.ones(T, T, dtype=torch.bool).triu(1)
        if padded:
            given["key_padding"] = some_padding(keys)
            masked |= given["key_padding"][:, None, None]
        if bias_heads is not None:
            given["bias"] = random(bias_heads, T, keys)
            bias += given["bias"]
        if content_bias:
            given["content_bias"] = random(B, H, T, keys)
            bias += given["content_bias"]
        given["factors"] = [(random(a, b, T, R), random(c, d, keys, R)) for a, b, c, d in pairs]
        for query, key in given["factors"]:
            bias += query @ key.transpose(-1, -2)
        before = copy.deepcopy(given)
        expected, shares = by_loops(q, k, v, bias, masked)
        terms, need = LogitTerms(**given), way == "weights"
        out, weights = attend(q, k, v, terms, scale=SCALE, need_weights=need)
        # Fused, padding may be a column of large negative numbers: the same weights to the bit.
        close(out, expected)
        if weights is not None:
            close(weights, shares)
            assert not weights.masked_select(masked).any()
        assert (weights is not None) == need
        for after, other in zip(tree_leaves(given), tree_leaves(before), strict=True):
            assert torch.equal(after, other) if isinstance(after, Tensor) else after == other


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
@pytest.mark.parametrize("term", ["none", "bias", "shared bias", "content bias", "factors"])
def test_gradients_of_queries_keys_values_and_terms(
    way: str, term: str, padded: bool, causal: bool
) -> None:
    q, k, v = inputs()
    keys = T if causal else S
    more = {
        "none": {},
        "bias": {"bias": random(H, T, keys)},
        "shared bias": {"bias": random(1, T, keys)},
        "content bias": {"content_bias": random(B, H, T, keys), "bias": random(1, T, keys)},
        "factors": {"query": random(1, H, T, R), "key": random(B, 1, keys, R)},
    }[term]
    leaves = [q, k[:, :, :keys], v[:, :, :keys], *more.values()]
    padding = some_padding(keys) if padded else None

    def run_all(*args: Tensor) -> Tensor:
        terms: dict[str, Any] = dict(zip(more, args[3:], strict=True))
        if term == "factors":
            terms = {"factors": [args[3:]]}
        return run(way, *args[:3], key_padding=padding, causal=causal, **terms)

    inputs_ = [x.clone().requires_grad_() for x in leaves]
    assert torch.autograd.gradcheck(run_all, inputs_, fast_mode=True)


def test_queries_and_keys_may_be_wider_than_values(way: str) -> None:
    q, k, v = inputs()
    v = v[..., :3]
    expected, _ = oracle.attend(q.numpy(), k.numpy(), v.numpy(), SCALE, lambda *_: 0.0)
    close(run(way, q, k, v), torch.from_numpy(expected))


def test_a_function_of_the_weights_is_added(way: str) -> None:
    """As it is for keys with vectors of their own: the weights times them."""
    q, k, v = inputs()
    own = random(S, D)
    close(run(way, q, k, v, output=lambda weights: weights @ own), run("own", q, k, v + own))
    close(run(way, q, k, v, output=lambda weights: None), run("own", q, k, v))


def test_output_gets_the_weights_after_dropout() -> None:
    q, k, v = inputs()
    seen: list[Tensor] = []
    plain, before = attend(q, k, v, LogitTerms(), scale=SCALE, need_weights=True)
    out, weights = attend(
        *(q, k, v, LogitTerms()), scale=SCALE, output=seen.append, dropout_p=0.5, need_weights=True
    )
    assert weights is not None
    assert before is not None
    assert torch.equal(weights, before), "those before dropout"
    assert not torch.allclose(plain, out, rtol=0, atol=1e-3)
    assert seen[0].shape == weights.shape == (B, H, T, S)
    assert (seen[0] == 0).any()
    close(seen[0] @ v, out)
    used = seen[0] != 0
    torch.testing.assert_close(seen[0][used], 2 * weights[used], rtol=1e-6, atol=0)


@pytest.mark.parametrize("appended", [False, True], ids=["", "factors"])
def test_gradients_stay_finite_at_masked_keys(way: str, appended: bool) -> None:
    q, k, v = (x.clone().requires_grad_() for x in inputs())
    bias = random(1, T, S).requires_grad_()
    pairs = [(random(1, H, T, R), random(1, H, S, R))] if appended else []
    out = run(way, q, k, v, bias=bias, key_padding=some_padding(), factors=pairs)
    out.square().sum().backward()
    for x in (q, k, v, bias):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
        assert x.grad.abs().sum() > 0
    for x in (k, v):
        assert x.grad is not None
        masked = some_padding()[:, None, :, None].expand_as(x.grad)
        assert not x.grad[masked].any()
        assert x.grad[~masked].all()


@pytest.mark.parametrize("way", ["own", "fused"], indirect=True)
def test_dropout_keeps_the_expected_output(way: str) -> None:
    q, k, v = (x[:, :1, :1] for x in inputs())
    plain = run(way, q, k, v)
    many = [x.expand(4000, -1, -1, -1) for x in (q[:1], k[:1], v[:1])]
    mean = run(way, *many, dropout_p=0.3).mean(0)
    # Each draw has a standard deviation below 1; 4,000 of them leave 0.016, of which five fit.
    torch.testing.assert_close(mean, plain[0], rtol=0, atol=0.08)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_close_and_softmax_is_taken_in_float32(
    way: str, dtype: torch.dtype
) -> None:
    q, k, v = inputs(dtype)
    bias, pair = torch.randn(H, T, S), (torch.randn(1, 1, T, 2) / 4, torch.randn(B, H, S, 2))
    terms = LogitTerms(bias, factors=[pair], key_padding=some_padding())
    out, weights = attend(q, k, v, terms, scale=SCALE, need_weights=way == "weights")
    exact = [x.double() for x in (q, k, v, bias, *pair)]
    factors = [(exact[4], exact[5])]
    expected = run("own", *exact[:3], bias=exact[3], factors=factors, key_padding=some_padding())
    assert out.dtype == dtype
    # Logits below 8 are rounded to eps * 8, and so is the output: the same share of its values,
    # which stay below 4.
    tolerance = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=tolerance)
    if weights is not None:
        assert weights.dtype == torch.float32
        # float32 rounds sums of 7 shares to 1e-7; half precision would be off by 1e-3.
        torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T), rtol=0, atol=1e-6)


def test_long_sentences_at_inference_are_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are the same (above); this guards the speed."""
    calls: list[int] = []
    original = attention._fused
    monkeypatch.setattr(attention, "_fused", lambda *given: calls.append(1) or original(*given))
    keys = attention._FUSED_FROM
    q, k = torch.randn(1, H, T, D), torch.randn(1, H, keys, D)
    bias = torch.randn(H, T, keys, requires_grad=True)
    with torch.no_grad():
        fused, _ = attend(q, k, k, LogitTerms(bias), scale=SCALE)
    assert len(calls) == 1
    own, _ = attend(q, k, k, LogitTerms(bias), scale=SCALE)
    assert len(calls) == 1, "a bias that learns: torch has no fused backward pass on CPU"
    # float32, 192 terms of order 1.
    torch.testing.assert_close(fused, own, rtol=0, atol=1e-5)
