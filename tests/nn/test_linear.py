"""Products by either library are the same; only plain float32 on a CPU is given to oneDNN."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import diet_mt.nn.linear as products
from diet_mt.nn.linear import Linear, linear, use_fast_products

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="torch without oneDNN"
)

# Wider inside, wider outside, and too narrow for a copy; the last by far too small.
SHAPES = [(65, 300, 120), (65, 120, 300), (257, 70, 128), (3, 5, 7)]
Calls = list[tuple[int, ...]]


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """oneDNN on any processor and for any size; the shapes of its products."""
    calls: Calls = []
    one_dnn = products._one_dnn

    def spy(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        calls.append((*x.shape, weight.size(0)))
        return one_dnn(x, weight, bias)

    monkeypatch.setattr(products, "one_dnn_is_faster", lambda: True)
    monkeypatch.setattr(products, "_SMALLEST", 0)
    monkeypatch.setattr(products, "_one_dnn", spy)
    return calls


def operands(rows: int, inside: int, outside: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(rows, inside), torch.randn(outside, inside), torch.randn(outside)


def near(tensor: Tensor, exact: Tensor, rounding: float = 2e-6) -> None:
    limit = rounding * exact.abs().max().item()
    torch.testing.assert_close(tensor.double(), exact.double(), rtol=0, atol=limit)


def values(call: Callable[..., Tensor], *given: Tensor | None) -> list[Tensor]:
    """The output and the gradients of all that have one; the loss tells outputs apart."""
    leaves = [None if x is None else x.clone().requires_grad_() for x in given]
    out = call(*leaves)
    (out * torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view(out.shape)).sum().backward()
    gradients = [leaf.grad for leaf in leaves if leaf is not None and leaf.grad is not None]
    return [out.detach(), *gradients]


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(forced: Calls, shape: tuple[int, int, int], with_bias: bool) -> None:
    x, weight, bias = operands(*shape)
    given = (x, weight, bias if with_bias else None)
    ours = values(linear, *given)
    expected = values(F.linear, *(None if t is None else t.double() for t in given))
    assert len(ours) == len(expected) == 3 + with_bias
    for own, exact in zip(ours, expected, strict=True):
        near(own, exact)
    wide = max(shape[1:]) >= products._WIDEST_FROM
    assert len(forced) == (3 if wide else 2), "not by oneDNN"


def test_leading_axes_and_gaps(forced: Calls) -> None:
    x, weight, bias = operands(60, 12, 9)
    turned = x.view(4, 15, 12).transpose(0, 1)
    ours = values(linear, turned, weight, bias)
    for own, other in zip(ours, values(F.linear, turned, weight, bias), strict=True):
        torch.testing.assert_close(own, other)
    assert ours[0].shape == (15, 4, 9)
    out, dx, dw = values(linear, torch.ones(0, 3, 5), torch.ones(4, 5))
    assert (out.shape, dx.shape) == ((0, 3, 4), (0, 3, 5))
    assert not dw.any()
    assert forced


@pytest.mark.parametrize("frozen", ["input", "weight", "both"])
def test_frozen_operands_get_no_gradient(forced: Calls, frozen: str) -> None:
    x, weight, bias = operands(65, 300, 120)
    x.requires_grad_(frozen == "weight")
    weight.requires_grad_(frozen == "input")
    out = linear(x, weight, bias)
    assert out.requires_grad == (frozen != "both")
    if frozen != "both":
        out.sum().backward()
    assert (x.grad is None, weight.grad is None) == (frozen != "weight", frozen != "input")
    assert len(forced) == (1 if frozen == "both" else 2)


def test_a_gradient_has_a_gradient(forced: Calls) -> None:
    x, weight, _ = operands(65, 12, 9)

    def second(call: Callable[..., Tensor]) -> Tensor:
        leaves = x.clone().requires_grad_(), weight.clone().requires_grad_()
        (first,) = torch.autograd.grad(call(*leaves).pow(3).sum(), leaves[:1], create_graph=True)
        return torch.autograd.grad(first.pow(2).sum(), leaves[1])[0]

    near(second(linear), second(F.linear), 1e-5)


class Kind(Tensor):
    """A tensor of a class of its own."""


OTHERS: dict[str, Callable[[Tensor], Tensor]] = {
    "float64": lambda t: t.double(),
    "bfloat16": lambda t: t.bfloat16(),
    "float16": lambda t: t.half(),
    "meta": lambda t: t.to("meta"),
    "subclass": lambda t: t.as_subclass(Kind),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_tensors_are_for_torch(forced: Calls, kind: str) -> None:
    x, weight, bias = (OTHERS[kind](t) for t in operands(65, 300, 120))
    out, expected = linear(x, weight, bias), F.linear(x, weight, bias)
    assert (out.dtype, out.device, type(out)) == (x.dtype, x.device, type(expected))
    assert forced == []


def test_other_settings_are_for_torch(forced: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Autocast, oneDNN switched off, scripts and traces, small products."""
    given = operands(65, 300, 120)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(*given).dtype == torch.bfloat16
    with torch.backends.mkldnn.flags(enabled=False):
        linear(*given)
    layer, x = Linear(300, 120), torch.ones(65, 300)
    expected = F.linear(x, layer.weight, layer.bias)
    for make in (torch.jit.script, lambda module: torch.jit.trace(module, x)):
        made = make(layer)
        forced.clear()
        torch.testing.assert_close(made(x), expected)
        assert forced == []
    monkeypatch.setattr(products, "_SMALLEST", 65 * 300 * 120 + 1)
    linear(*given)
    products.product(*given[:2])
    assert forced == []


@pytest.mark.parametrize("faster", [True, False])
def test_sums_of_products(monkeypatch: pytest.MonkeyPatch, faster: bool) -> None:
    monkeypatch.setattr(products, "one_dnn_is_faster", lambda: faster)
    monkeypatch.setattr(products, "_SMALLEST", 0)
    x, weight, _ = operands(65, 300, 120)
    left, total = torch.randn(65, 40), torch.ones(40, 300)
    products.add_product(total, left, x)
    near(products.product(x, weight), x.double() @ weight.double().t())
    near(total, 1 + left.double().t() @ x.double())


@pytest.mark.parametrize(
    ("maker", "capability", "expected"),
    [
        ("AuthenticAMD", "AVX512", True),
        ("AuthenticAMD", "DEFAULT", False),
        ("GenuineIntel", "AVX512", False),
        ("", "AVX2", False),
    ],
)
def test_the_rule(
    monkeypatch: pytest.MonkeyPatch, maker: str, capability: str, expected: bool
) -> None:
    monkeypatch.setattr(products, "_maker", lambda: maker)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert products.one_dnn_is_faster.__wrapped__() is expected


class Own(nn.Linear):
    """A linear layer of another kind."""


def test_layers_of_a_model(forced: Calls) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), Own(6, 5), nn.Linear(5, 3, bias=False))
    hooked: list[nn.Module] = []
    model[0].register_forward_pre_hook(lambda module, _: hooked.append(module))
    names, weight, x = list(model.state_dict()), model[0].weight, torch.ones(2, 4)
    expected = model(x)
    use_fast_products(model)
    assert [type(part) for part in model] == [Linear, nn.ReLU, Own, Linear]
    assert list(model.state_dict()) == names
    assert model[0].weight is weight
    for twin in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model[1:]))):
        assert type(twin[-1]) is Linear
    torch.testing.assert_close(model(x), expected)
    assert len(hooked) == 2
    assert len(forced) == 2
