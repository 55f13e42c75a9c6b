"""``attend`` against loops, on all of its ways: its own, and torch's fused kernel with padding in a
mask for each sentence or in a column of the keys.
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
from diet_mt.nn.attention import Added, attend

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


def by_loops(
    q: Tensor, k: Tensor, v: Tensor, added: Tensor | None, hidden: Tensor
) -> tuple[Tensor, Tensor]:
    """Output and weights of the oracle; ``added`` and ``hidden`` broadcast to (B, H, T, S)."""
    shape = (*q.shape[:3], k.size(2))
    logits = torch.zeros(shape, dtype=torch.float64) if added is None else added.expand(shape)
    full = logits.masked_fill(hidden, -INF).detach().numpy()
    out, weights = oracle.attend(
        q.detach().numpy(),
        k.detach().numpy(),
        v.detach().numpy(),
        SCALE,
        lambda b, h, i, j: float(full[b, h, i, j]),
    )
    return torch.from_numpy(out), torch.from_numpy(weights)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How ``attend`` computes: the way it would choose by size must not matter."""
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: request.param in ("fused", "column"))
    if request.param == "column":
        monkeypatch.setattr(attention, "_COLUMN_FROM", 0)
    return str(request.param)


def run(way: str, *args: Tensor, **kwargs: object) -> Tensor:
    """``kwargs``: the fields of ``Added`` and what else ``attend`` takes."""
    fields = {name: kwargs.pop(name) for name in list(kwargs) if name in Added.__annotations__}
    added = Added(**fields)  # type: ignore[arg-type]
    return attend(*args, added, need_weights=way == "weights", **kwargs)[0]  # type: ignore[arg-type]


FACTORS = {"none": [], "one pair": [(1, H, 1, 1)], "two pairs": [(B, 1, B, 1), (1, 1, 1, H)]}


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
def test_all_that_is_added_and_masked_equals_the_loops(
    way: str, padded: bool, causal: bool
) -> None:
    """In every combination; and nothing that is given is changed, since other layers read it."""
    for case in product((None, 1, H), (False, True), FACTORS):
        try:
            compare_with_loops(way, *case, padded, causal)
        except AssertionError as error:
            raise AssertionError(f"bias of {case[0]} heads, query bias, factors: {case}") from error


def compare_with_loops(
    way: str,
    bias_heads: int | None,
    with_content_bias: bool,
    pairs: str,
    padded: bool,
    causal: bool,
) -> None:
    q, k, v = inputs()
    keys = T if causal else S  # under a causal mask there are as many keys as queries
    k, v = k[:, :, :keys], v[:, :, :keys]
    hidden = torch.zeros(B, 1, T, keys, dtype=torch.bool)
    added = torch.zeros(B, H, T, keys, dtype=torch.float64)
    given: dict[str, Any] = {"causal": causal}
    if causal:
        hidden |= torch.ones(T, T, dtype=torch.bool).triu(1)
    if padded:
        given["padding"] = some_padding(keys)
        hidden |= given["padding"][:, None, None]
    if bias_heads is not None:
        given["bias"] = random(bias_heads, T, keys)
        added += given["bias"]
    if with_content_bias:
        given["content_bias"] = random(B, H, T, keys)
        added += given["content_bias"]
    given["factors"] = [
        (random(a, b, T, R), random(c, d, keys, R)) for a, b, c, d in FACTORS[pairs]
    ]
    for query, key in given["factors"]:
        added += query @ key.transpose(-1, -2)
    before = copy.deepcopy(given)
    expected, shares = by_loops(q, k, v, added, hidden)
    out, weights = attend(q, k, v, Added(**given), scale=SCALE, need_weights=way == "weights")
    # Fused, padding may be a column of large negative numbers: the same weights to the last bit.
    # float64, sums of at most 7 terms of order 1: only rounding can differ.
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
    if way == "weights":
        assert weights is not None
        torch.testing.assert_close(weights, shares, rtol=0, atol=1e-12)
        assert not weights.masked_select(hidden).any()
    else:
        assert weights is None
    for found, other in zip(tree_leaves(given), tree_leaves(before), strict=True):
        assert torch.equal(found, other) if isinstance(found, Tensor) else found == other


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
@pytest.mark.parametrize("heads", [None, H, 1], ids=lambda heads: f"bias:{heads}")
def test_gradients_of_queries_keys_values_and_bias(
    way: str, heads: int | None, padded: bool, causal: bool
) -> None:
    q, k, v = inputs()
    keys = T if causal else S
    given = [x.clone().requires_grad_() for x in (q, k[:, :, :keys], v[:, :, :keys])]
    if heads is not None:
        given.append(random(heads, T, keys).requires_grad_())
    padding = some_padding(keys) if padded else None

    def run_all(*args: Tensor) -> Tensor:
        bias = args[3] if len(args) > 3 else None
        more: dict[str, Any] = {"bias": bias, "padding": padding, "causal": causal}
        return run(way, *args[:3], scale=SCALE, **more)

    assert torch.autograd.gradcheck(run_all, given, fast_mode=True)


@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
def test_gradients_of_a_content_bias(way: str, padded: bool) -> None:
    given = [x.clone().requires_grad_() for x in inputs()]
    given.append(random(B, H, T, S).requires_grad_())
    bias = random(1, T, S) if padded else None
    padding = some_padding() if padded else None

    def run_all(*args: Tensor) -> Tensor:
        return run(way, *args[:3], scale=SCALE, content_bias=args[3], bias=bias, padding=padding)

    assert torch.autograd.gradcheck(run_all, given, fast_mode=True)


@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
def test_gradients_of_factors(way: str, padded: bool) -> None:
    given = [x.clone().requires_grad_() for x in inputs()]
    given += [random(1, H, T, R).requires_grad_(), random(B, 1, S, R).requires_grad_()]
    padding = some_padding() if padded else None

    def run_all(*args: Tensor) -> Tensor:
        return run(way, *args[:3], scale=SCALE, factors=[args[3:]], padding=padding)

    assert torch.autograd.gradcheck(run_all, given, fast_mode=True)


def test_factors_are_columns_up_to_a_multiple_of_eight() -> None:
    """q' k' = scale q k + F_Q F_K; fused kernels want such head sizes."""
    q, k, _ = inputs()
    of_query, of_key = random(1, H, T, R), random(1, 1, S, R)
    wide_q, wide_k, scale = attention._appended(q, k, SCALE, [(of_query, of_key)])
    assert wide_q.shape == (B, H, T, 16)
    assert wide_k.shape == (B, H, S, 16)
    expected = SCALE * q @ k.transpose(-1, -2) + of_query @ of_key.transpose(-1, -2)
    found = scale * wide_q @ wide_k.transpose(-1, -2)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_queries_and_keys_may_be_wider_than_values(way: str) -> None:
    q, k, _ = inputs()
    _, _, v = inputs()
    v = v[..., :3]
    expected, _ = oracle.attend(q.numpy(), k.numpy(), v.numpy(), SCALE, lambda *_: 0.0)
    found = run(way, q, k, v, scale=SCALE)
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=1e-12)


def test_what_comes_of_the_weights_is_added(way: str) -> None:
    """As it is for keys with vectors of their own: the weights times them."""
    q, k, v = inputs()
    own = random(S, D)
    found = run(way, q, k, v, scale=SCALE, output=lambda weights: weights @ own)
    torch.testing.assert_close(found, run("own", q, k, v + own, scale=SCALE), rtol=0, atol=1e-12)
    nothing = run(way, q, k, v, scale=SCALE, output=lambda weights: None)
    torch.testing.assert_close(nothing, run("own", q, k, v, scale=SCALE), rtol=0, atol=1e-12)


def test_output_is_made_of_the_weights_after_dropout() -> None:
    q, k, v = inputs()
    seen: list[Tensor] = []

    def output(weights: Tensor) -> None:
        seen.append(weights)

    out, weights = attend(
        q, k, v, Added(), scale=SCALE, output=output, dropout_p=0.5, need_weights=True
    )
    assert weights is not None
    assert seen[0].shape == weights.shape == (B, H, T, S)
    assert (seen[0] == 0).any()
    torch.testing.assert_close(seen[0] @ v, out, rtol=0, atol=1e-12)
    kept = seen[0] != 0
    torch.testing.assert_close(seen[0][kept], 2 * weights[kept], rtol=1e-6, atol=0)


@pytest.mark.parametrize("appended", [False, True], ids=["", "factors"])
def test_gradients_stay_finite_where_keys_are_closed(way: str, appended: bool) -> None:
    q, k, v = (x.clone().requires_grad_() for x in inputs())
    bias = random(1, T, S).requires_grad_()
    pairs = [(random(1, H, T, R), random(1, H, S, R))] if appended else []
    more: dict[str, Any] = {"bias": bias, "padding": some_padding(), "factors": pairs}
    run(way, q, k, v, scale=SCALE, **more).square().sum().backward()
    for x in (q, k, v, bias):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
        assert x.grad.abs().sum() > 0
    for x in (k, v):
        assert x.grad is not None
        closed = some_padding()[:, None, :, None].expand_as(x.grad)
        assert not x.grad[closed].any()
        assert x.grad[~closed].all()


def test_a_bias_is_not_scaled(way: str) -> None:
    q, k, v = inputs()
    bias = random(H, T, S)
    out = run(way, q, k, v, scale=0.0, bias=bias)
    by_hand = bias.softmax(-1) @ v
    torch.testing.assert_close(out, by_hand, rtol=0, atol=1e-12)


def test_weights_are_those_before_dropout() -> None:
    q, k, v = inputs()
    plain, weights = attend(q, k, v, Added(), scale=SCALE, need_weights=True)
    dropped, after = attend(q, k, v, Added(), scale=SCALE, need_weights=True, dropout_p=0.5)
    assert weights is not None
    assert after is not None
    assert torch.equal(weights, after)
    assert not torch.allclose(plain, dropped, rtol=0, atol=1e-3)


@pytest.mark.parametrize("way", ["own", "fused"], indirect=True)
def test_dropout_keeps_the_expected_output(way: str) -> None:
    q, k, v = (x[:, :1, :1] for x in inputs())
    plain = run(way, q, k, v, scale=SCALE)
    draws = 4000
    many = [x.expand(draws, -1, -1, -1) for x in (q[:1], k[:1], v[:1])]
    mean = run(way, *many, scale=SCALE, dropout_p=0.3).mean(0)
    # Each draw has a standard deviation below 1; 4,000 of them leave 0.016, of which five fit.
    torch.testing.assert_close(mean, plain[0], rtol=0, atol=0.08)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_close_and_softmax_is_taken_in_float32(
    way: str, dtype: torch.dtype
) -> None:
    q, k, v = inputs(dtype)
    bias, pair = torch.randn(H, T, S), (torch.randn(1, 1, T, 2) / 4, torch.randn(B, H, S, 2))
    padding = some_padding()
    added = Added(bias, factors=[pair], padding=padding)
    out, weights = attend(q, k, v, added, scale=SCALE, need_weights=way == "weights")
    exact = [x.double() for x in (q, k, v, bias, *pair)]
    added = Added(exact[3], factors=[(exact[4], exact[5])], padding=padding)
    expected, _ = attend(*exact[:3], added, scale=SCALE, need_weights=True)
    assert out.dtype == dtype
    # Logits below 8 are rounded to eps * 8, and so is the output: the same share of its values,
    # which stay below 4.
    tolerance = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=tolerance)
    if weights is not None:
        assert weights.dtype == torch.float32
        # float32 rounds sums of 7 shares to 1e-7; half precision would be off by 1e-3.
        torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T), rtol=0, atol=1e-6)


class TestChoiceOfKernel:
    """Which way is taken on CPU. Results are the same (above); this guards the speed."""

    @pytest.fixture
    def fused_calls(self, monkeypatch: pytest.MonkeyPatch) -> list[None]:
        calls: list[None] = []
        original = attention._fused

        def counting(*args: object) -> Tensor:
            calls.append(None)
            return original(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(attention, "_fused", counting)
        return calls

    def test_long_sentences_at_inference_are_fused(self, fused_calls: list[None]) -> None:
        keys = attention._FUSED_FROM
        q, k = torch.randn(1, H, T, D), torch.randn(1, H, keys, D)
        bias = torch.randn(H, T, keys, requires_grad=True)
        with torch.no_grad():
            fused, _ = attend(q, k, k, Added(bias), scale=SCALE)
        assert len(fused_calls) == 1
        own, _ = attend(q, k, k, Added(bias), scale=SCALE)
        assert len(fused_calls) == 1, "a bias that learns: torch has no fused backward pass on CPU"
        # float32, 192 terms of order 1.
        torch.testing.assert_close(fused, own, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("device", "pays"), [("cpu", False), ("meta", True)])
def test_the_fused_kernel_pays_wherever_is_no_cpu(device: str, pays: bool) -> None:
    """``meta`` stands for whatever else there is."""
    q = torch.empty(2, 3, 5, 4, device=device)
    assert attention._fused_pays(q, q, [], dropout_p=0.1) is pays
