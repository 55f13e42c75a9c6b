"""``attend`` against loops, on both of its ways: its own and torch's fused kernel."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from diet_mt import attention
from diet_mt.attention import attend

from . import oracle

B, H, T, S, D = 2, 3, 5, 7, 4
SCALE = 0.37

# (B|1, H|1, T|1, S): every way in which offsets may be shared.
OFFSETS = [(b, h, t, S) for b in (B, 1) for h in (H, 1) for t in (T, 1)]
WAYS = ("own", "fused", "weights")


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of uneven sizes, as views, which is how layers pass them."""
    q = torch.randn(T, B, H * D).unflatten(-1, (H, D)).permute(1, 2, 0, 3)
    k, v = (torch.randn(S, B, H * D).unflatten(-1, (H, D)).permute(1, 2, 0, 3) for _ in range(2))
    return q.to(dtype), k.to(dtype), v.to(dtype)


def masked_offsets(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tensor:
    """Random offsets, a third of them closed, the first key always open."""
    offsets = torch.randn(shape, dtype=dtype)
    offsets[torch.rand(shape) < 0.34] = -math.inf
    offsets[..., 0] = 1.0
    return offsets


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How ``attend`` computes: the way it would choose by size must not matter."""
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: request.param == "fused")
    return str(request.param)


def run(way: str, *args: Tensor, **kwargs: object) -> Tensor:
    return attend(*args, need_weights=way == "weights", **kwargs)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", OFFSETS, ids=str)
def test_equals_the_loops(way: str, shape: tuple[int, ...]) -> None:
    q, k, v = inputs()
    offsets = masked_offsets(shape)
    full = offsets.expand(B, H, T, S).numpy()
    before = offsets.clone()
    out, weights = attend(q, k, v, scale=SCALE, offsets=offsets, need_weights=way == "weights")
    expected, shares = oracle.attend(
        q.numpy(), k.numpy(), v.numpy(), SCALE, lambda b, h, i, j: float(full[b, h, i, j])
    )
    # float64, sums of at most 7 terms of order 1: only rounding can differ.
    torch.testing.assert_close(out, torch.from_numpy(expected), rtol=0, atol=1e-12)
    if way == "weights":
        torch.testing.assert_close(weights, torch.from_numpy(shares), rtol=0, atol=1e-12)
    else:
        assert weights is None
    # Other layers may read the same offsets.
    assert torch.equal(offsets, before)


def test_without_offsets_equals_the_loops(way: str) -> None:
    q, k, v = inputs()
    expected, _ = oracle.attend(q.numpy(), k.numpy(), v.numpy(), SCALE, lambda *_: 0.0)
    out = run(way, q, k, v, scale=SCALE)
    torch.testing.assert_close(out, torch.from_numpy(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [None, *OFFSETS], ids=str)
def test_gradients_of_queries_keys_values_and_offsets(
    way: str, shape: tuple[int, ...] | None
) -> None:
    given = [x.clone().requires_grad_() for x in inputs()]
    if shape is not None:
        given.append(torch.randn(shape, dtype=torch.float64).requires_grad_())

    def run_all(*args: Tensor) -> Tensor:
        return run(way, *args[:3], scale=SCALE, offsets=args[3] if len(args) > 3 else None)

    assert torch.autograd.gradcheck(run_all, given)


@pytest.mark.parametrize("shape", [None, (B, 1, 1, S), (1, H, T, S)], ids=str)
def test_content_is_added_like_offsets(way: str, shape: tuple[int, ...] | None) -> None:
    """A term of this call alone, (B, H, T, S), beside offsets or without; neither is changed."""
    q, k, v = inputs()
    content = torch.randn(B, H, T, S, dtype=torch.float64)
    offsets = None if shape is None else masked_offsets(shape)
    given = [content.clone(), None if offsets is None else offsets.clone()]
    found = run(way, q, k, v, scale=SCALE, content=content, offsets=offsets)
    both = content if offsets is None else content + offsets
    expected, _ = oracle.attend(
        q.numpy(), k.numpy(), v.numpy(), SCALE, lambda b, h, i, j: float(both[b, h, i, j])
    )
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=1e-12)
    assert torch.equal(content, given[0])
    assert offsets is None or torch.equal(offsets, given[1])


def test_gradients_of_content(way: str) -> None:
    given = [x.clone().requires_grad_() for x in inputs()]
    given.append(torch.randn(B, H, T, S, dtype=torch.float64).requires_grad_())

    def run_all(*args: Tensor) -> Tensor:
        return run(way, *args[:3], scale=SCALE, content=args[3])

    assert torch.autograd.gradcheck(run_all, given)


@pytest.mark.parametrize("shape", [None, (B, 1, 1, T), (1, H, T, T)], ids=str)
@pytest.mark.parametrize("with_content", [False, True])
def test_causal_is_the_same_as_offsets_that_say_so(
    way: str, shape: tuple[int, ...] | None, with_content: bool
) -> None:
    q, k, v = inputs()
    k, v = k[:, :, :T], v[:, :, :T]
    content = torch.randn(B, H, T, T, dtype=torch.float64) if with_content else None
    offsets = None if shape is None else masked_offsets(shape)
    added = torch.zeros(B, H, T, T, dtype=torch.float64)
    for term in (content, offsets):
        added = added if term is None else added + term
    expected, _ = oracle.attend(
        q.numpy(),
        k.numpy(),
        v.numpy(),
        SCALE,
        lambda b, h, i, j: float(added[b, h, i, j]) if j <= i else -math.inf,
    )
    found = run(way, q, k, v, scale=SCALE, causal=True, content=content, offsets=offsets)
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=1e-12)


def test_queries_and_keys_may_be_wider_than_values(way: str) -> None:
    q, k, _ = inputs()
    _, _, v = inputs()
    v = v[..., :3]
    expected, _ = oracle.attend(q.numpy(), k.numpy(), v.numpy(), SCALE, lambda *_: 0.0)
    found = run(way, q, k, v, scale=SCALE)
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=1e-12)


def test_what_weights_are_mixed_to_is_added(way: str) -> None:
    """As it is for keys with vectors of their own: the weights times them."""
    q, k, v = inputs()
    own = torch.randn(S, D, dtype=torch.float64)
    found = run(way, q, k, v, scale=SCALE, mix=lambda weights: weights @ own, mixes=True)
    torch.testing.assert_close(found, run("own", q, k, v + own, scale=SCALE), rtol=0, atol=1e-12)


def test_what_is_mixed_are_the_weights_after_dropout() -> None:
    q, k, v = inputs()
    seen: list[Tensor] = []

    def mix(weights: Tensor) -> None:
        seen.append(weights)

    out, weights = attend(
        q, k, v, scale=SCALE, mix=mix, mixes=True, dropout_p=0.5, need_weights=True
    )
    assert weights is not None
    assert (seen[0] == 0).any()
    torch.testing.assert_close(seen[0] @ v, out, rtol=0, atol=1e-12)
    kept = seen[0] != 0
    torch.testing.assert_close(seen[0][kept], 2 * weights[kept], rtol=1e-6, atol=0)


def test_gradients_stay_finite_where_keys_are_closed(way: str) -> None:
    q, k, v = (x.clone().requires_grad_() for x in inputs())
    offsets = masked_offsets((1, 1, 1, S)).requires_grad_()
    run(way, q, k, v, scale=SCALE, offsets=offsets).square().sum().backward()
    for x in (q, k, v, offsets):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
        assert x.grad.abs().sum() > 0
    assert offsets.grad is not None
    assert torch.equal(offsets.grad.eq(0), offsets.detach().eq(-math.inf))


def test_offsets_are_not_scaled(way: str) -> None:
    q, k, v = inputs()
    offsets = torch.randn(1, H, T, S, dtype=torch.float64)
    out = run(way, q, k, v, scale=0.0, offsets=offsets)
    by_hand = offsets.softmax(-1) @ v
    torch.testing.assert_close(out, by_hand, rtol=0, atol=1e-12)


def test_weights_are_those_before_dropout() -> None:
    q, k, v = inputs()
    plain, weights = attend(q, k, v, scale=SCALE, need_weights=True)
    dropped, after = attend(q, k, v, scale=SCALE, need_weights=True, dropout_p=0.5)
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
    offsets = masked_offsets((1, H, T, S), torch.float32)
    out, weights = attend(q, k, v, scale=SCALE, offsets=offsets, need_weights=way == "weights")
    exact = [x.double() for x in (q, k, v, offsets)]
    expected, _ = attend(*exact[:3], scale=SCALE, offsets=exact[3], need_weights=True)
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
        offsets = torch.randn(1, H, T, keys, requires_grad=True)
        with torch.no_grad():
            fused, _ = attend(q, k, k, scale=SCALE, offsets=offsets)
        assert len(fused_calls) == 1
        own, _ = attend(q, k, k, scale=SCALE, offsets=offsets)
        assert len(fused_calls) == 1, "offsets that learn: torch has no fused backward pass on CPU"
        # float32, 192 terms of order 1.
        torch.testing.assert_close(fused, own, rtol=0, atol=1e-5)
