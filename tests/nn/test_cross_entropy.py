"""The smoothed loss has fairseq's value, and its gradient."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch import Tensor

from diet_mt.nn import cross_entropy, linear
from diet_mt.nn.cross_entropy import from_features

PAD, ROWS, WIDTH, WORDS = 1, 23, 6, 37

Loss = Callable[[Tensor, Tensor, Tensor, float], "tuple[Tensor, Tensor]"]


def fairseqs(x: Tensor, weight: Tensor, targets: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    logits = F.log_softmax(F.linear(x, weight), dim=-1)
    loss, nll = label_smoothed_nll_loss(logits, targets, eps, ignore_index=PAD)
    return loss, nll


def fused(x: Tensor, weight: Tensor, targets: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return from_features(x, weight, targets, eps, PAD)


def as_on_a_gpu(x: Tensor, weight: Tensor, targets: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Without looking at what is padding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_entropy, "may_read", lambda _: False)
        return fused(x, weight, targets, eps)


both = pytest.mark.parametrize("form", [fused, as_on_a_gpu])
WITH_PADS = torch.tensor([PAD if n % 5 == 2 else 2 + n % (WORDS - 2) for n in range(ROWS)])
TARGETS = {
    "pads": WITH_PADS,
    "no-pads": WITH_PADS.clamp_min(3),
    "all-pads": torch.full((ROWS,), PAD),
}


@pytest.fixture(params=[5, 1000], ids=["many-blocks", "one-block"], autouse=True)
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """23 rows in blocks of 5, the last of them shorter, or all in one."""
    monkeypatch.setattr(cross_entropy, "_LOGITS", 1)
    monkeypatch.setattr(cross_entropy, "_LOGITS_ON_DEVICE", 1)
    monkeypatch.setattr(cross_entropy, "_ROWS", request.param)


def inputs(dtype: torch.dtype, size: float = 1.0) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    x, weight = torch.randn(ROWS, WIDTH) * size, torch.randn(WORDS, WIDTH)
    return x.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_()


def values(
    form: Loss, dtype: torch.dtype, targets: Tensor, eps: float, factor: float = 0.25
) -> list[Tensor]:
    """Loss, -log p, and the gradients of features and weight after a scaling, as by --fp16."""
    x, weight = inputs(dtype)
    loss, nll = form(x, weight, targets, eps)
    (loss * factor).backward()
    assert x.grad is not None
    assert weight.grad is not None
    return [loss.detach(), nll.detach(), x.grad, weight.grad]


@both
@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("factor", [0.25, 1024.0])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 2e-6)], ids=str
)
def test_value_and_gradient(
    form: Loss, dtype: torch.dtype, tolerance: float, factor: float, targets: str, eps: float
) -> None:
    given = TARGETS[targets], eps, factor
    expected = values(fairseqs, torch.float64, *given)
    for own, exact in zip(values(form, dtype, *given), expected, strict=True):
        assert own.dtype == dtype
        limit = tolerance * max(exact.abs().max().item(), 1e-3)
        torch.testing.assert_close(own.double(), exact, rtol=0, atol=limit)


@both
def test_targets_of_hardly_any_probability(form: Loss) -> None:
    """Logits so far apart that float32 has no number for p(target)."""
    targets = TARGETS["no-pads"]
    (x, weight), (exact_x, exact_weight) = (inputs(d, 200.0) for d in (torch.float32, torch.double))
    loss, nll = form(x, weight, targets, 0.1)
    expected, expected_nll = fairseqs(exact_x, exact_weight, targets, 0.1)
    assert expected_nll > 100 * ROWS
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert nll.item() == pytest.approx(expected_nll.item(), rel=1e-6)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(x.grad, exact_x.grad.float(), rtol=1e-4, atol=1e-4)


@both
@pytest.mark.parametrize("frozen", [0, 1, None])
def test_frozen_operands_get_no_gradient(form: Loss, frozen: int | None) -> None:
    given = inputs(torch.float64)
    for number, leaf in enumerate(given):
        leaf.requires_grad_(frozen is not None and number != frozen)
    loss, nll = form(*given, WITH_PADS, 0.1)
    expected = values(fairseqs, torch.float64, WITH_PADS, 0.1, 1.0)
    torch.testing.assert_close(loss.detach(), expected[0])
    assert loss.requires_grad == (frozen is not None)
    assert not nll.requires_grad
    if frozen is not None:
        loss.backward()
        torch.testing.assert_close(given[1 - frozen].grad, expected[3 - frozen])
        assert given[frozen].grad is None


@both
def test_backward_twice_adds_up(form: Loss) -> None:
    x, weight = inputs(torch.float64)
    turned = x.detach().t().contiguous().t().requires_grad_()  # features with gaps
    loss, _ = form(turned, weight, WITH_PADS, 0.1)
    for times in (1, 2):
        loss.backward(retain_graph=True)
        expected = values(fairseqs, torch.float64, WITH_PADS, 0.1, times)[2:]
        torch.testing.assert_close([turned.grad, weight.grad], expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_half_precision(dtype: torch.dtype) -> None:
    """From probabilities that float16 has no numbers for, scaled as by a loss scale."""
    torch.manual_seed(1)
    exact = [torch.randn(ROWS, WIDTH), torch.randn(4000, WIDTH)]
    exact = [x.to(dtype).double().requires_grad_() for x in exact]
    half = [x.detach().to(dtype).requires_grad_() for x in exact]
    loss, nll = as_on_a_gpu(*half, WITH_PADS, 0.1)
    expected, expected_nll = fairseqs(*exact, WITH_PADS, 0.1)
    assert loss.dtype == nll.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=1e-2)
    assert nll.item() == pytest.approx(expected_nll.item(), rel=1e-2)
    (loss * 64).backward()
    (expected * 64).backward()
    for own, true in zip(half, exact, strict=True):
        assert own.grad is not None
        assert true.grad is not None
        assert own.grad.dtype == dtype
        error = (own.grad.double() - true.grad).norm() / true.grad.norm()
        assert error < 4 * torch.finfo(dtype).eps


def test_by_the_other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("torch without oneDNN")
    monkeypatch.setattr(linear, "one_dnn_is_faster", lambda: True)
    monkeypatch.setattr(linear, "_SMALLEST", 0)
    monkeypatch.setattr(linear, "_WIDEST_FROM", 0)
    expected = values(fairseqs, torch.float64, WITH_PADS, 0.1)
    for own, exact in zip(values(fused, torch.float32, WITH_PADS, 0.1), expected, strict=True):
        torch.testing.assert_close(own, exact.float(), rtol=1e-5, atol=1e-6)
