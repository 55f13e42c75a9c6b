"""Products by either library are the same; only plain float32 on a CPU is given to oneDNN."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """oneDNN on any processor and for any size; the shapes of its products are kept."""
    calls: list[tuple[int, ...]] = []
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


def values(call: Callable[..., Tensor], *given: Tensor | None) -> list[Tensor]:
    """The output and the gradients of all that have one; the loss tells outputs apart."""
    leaves = [None if x is None else x.clone().requires_grad_() for x in given]
    out = call(*leaves)
    (out * torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view(out.shape)).sum().backward()
    gradients = [leaf.grad for leaf in leaves if leaf is not None and leaf.grad is not None]
    return [out.detach(), *gradients]


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(
    forced: list[tuple[int, ...]], shape: tuple[int, int, int], with_bias: bool
) -> None:
    x, weight, bias = operands(*shape)
    given = (x, weight, bias if with_bias else None)
    found = values(linear, *given)
    expected = values(F.linear, *(None if t is None else t.double() for t in given))
    assert len(found) == len(expected) == 3 + with_bias
    for own, exact in zip(found, expected, strict=True):
        size = exact.abs().max().item()
        torch.testing.assert_close(own.double(), exact, rtol=0, atol=2e-6 * size)
    wide = max(shape[1:]) >= products._WIDEST_FROM
    assert len(forced) == (3 if wide else 2), "not by oneDNN"


def test_leading_axes_and_gaps(forced: list[tuple[int, ...]]) -> None:
    x, weight, bias = operands(60, 12, 9)
    turned = x.view(4, 15, 12).transpose(0, 1)
    found = values(linear, turned, weight, bias)
    for own, other in zip(found, values(F.linear, turned, weight, bias), strict=True):
        torch.testing.assert_close(own, other)
    assert found[0].shape == (15, 4, 9)
    assert forced


@pytest.mark.parametrize("frozen", ["input", "weight", "both"])
def test_what_is_frozen_gets_no_gradient(forced: list[tuple[int, ...]], frozen: str) -> None:
    x, weight, bias = operands(65, 300, 120)
    x.requires_grad_(frozen == "weight")
    weight.requires_grad_(frozen == "input")
    out = linear(x, weight, bias)
    assert out.requires_grad == (frozen != "both")
    if frozen != "both":
        out.sum().backward()
    assert (x.grad is None, weight.grad is None) == (frozen != "weight", frozen != "input")
    assert len(forced) == (1 if frozen == "both" else 2)


def test_no_rows(forced: list[tuple[int, ...]]) -> None:
    out, dx, dw = values(linear, torch.ones(0, 3, 5), torch.ones(4, 5))
    assert out.shape == (0, 3, 4)
    assert dx.shape == (0, 3, 5)
    assert dw.tolist() == torch.zeros(4, 5).tolist()


def test_a_gradient_has_a_gradient(forced: list[tuple[int, ...]]) -> None:
    x, weight, _ = operands(65, 12, 9)

    def second(call: Callable[..., Tensor]) -> Tensor:
        leaves = x.clone().requires_grad_(), weight.clone().requires_grad_()
        (first,) = torch.autograd.grad(call(*leaves).pow(3).sum(), leaves[:1], create_graph=True)
        return torch.autograd.grad(first.pow(2).sum(), leaves[1])[0]

    exact = second(F.linear)
    size = exact.abs().max().item()
    torch.testing.assert_close(second(linear), exact, rtol=0, atol=1e-5 * size)


class Kind(Tensor):
    """A tensor of a class of its own."""


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.double(),
        lambda t: t.bfloat16(),
        lambda t: t.half(),
        lambda t: t.to("meta"),
        lambda t: t.as_subclass(Kind),
    ],
    ids=["float64", "bfloat16", "float16", "meta", "subclass"],
)
def test_other_tensors_are_for_torch(
    forced: list[tuple[int, ...]], change: Callable[[Tensor], Tensor]
) -> None:
    x, weight, bias = (change(t) for t in operands(65, 300, 120))
    found = linear(x, weight, bias)
    expected = F.linear(x, weight, bias)
    assert (found.dtype, found.device, type(found)) == (x.dtype, x.device, type(expected))
    assert forced == []


def test_autocast_keeps_its_precision(forced: list[tuple[int, ...]]) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(*operands(65, 300, 120)).dtype == torch.bfloat16
    assert forced == []


def test_one_dnn_switched_off(forced: list[tuple[int, ...]]) -> None:
    with torch.backends.mkldnn.flags(enabled=False):
        linear(*operands(65, 300, 120))
    assert forced == []


def test_small_products_are_for_torch(
    forced: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_SMALLEST", 65 * 300 * 120 + 1)
    linear(*operands(65, 300, 120))
    products.product(*operands(65, 300, 120)[:2])
    assert forced == []


def test_wrong_shapes_are_told_as_by_torch(forced: list[tuple[int, ...]]) -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        linear(torch.ones(3, 4), torch.ones(5, 6))


def test_scripted_and_traced(forced: list[tuple[int, ...]]) -> None:
    layer, x = Linear(300, 120), torch.ones(65, 300)
    expected = F.linear(x, layer.weight, layer.bias)
    for made in (torch.jit.script(layer), torch.jit.trace(layer, x)):
        forced.clear()
        torch.testing.assert_close(made(x), expected)
        assert forced == []


@pytest.mark.parametrize("faster", [True, False])
def test_sums_of_products(monkeypatch: pytest.MonkeyPatch, faster: bool) -> None:
    monkeypatch.setattr(products, "one_dnn_is_faster", lambda: faster)
    monkeypatch.setattr(products, "_SMALLEST", 0)
    x, weight, _ = operands(65, 300, 120)
    left, total = torch.randn(65, 40), torch.ones(40, 300)
    products.add_product(total, left, x)
    exact = x.double(), weight.double(), left.double()
    for found, expected in (
        (products.product(x, weight), exact[0] @ exact[1].t()),
        (total, 1 + exact[2].t() @ exact[0]),
    ):
        size = expected.abs().max().item()
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-6 * size)


@pytest.mark.parametrize(
    ("maker", "capability", "expected"),
    [
        ("AuthenticAMD", "AVX512", True),
        ("AuthenticAMD", "DEFAULT", False),
        ("GenuineIntel", "AVX512", False),
        (None, "AVX2", False),
    ],
)
def test_the_rule(
    monkeypatch: pytest.MonkeyPatch, maker: str | None, capability: str, expected: bool
) -> None:
    monkeypatch.setattr(products, "_maker", lambda: maker)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert products.one_dnn_is_faster.__wrapped__() is expected


def test_the_maker_of_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr("platform.processor", lambda: "AMD64 Family 25 Model 33, AuthenticAMD")
    assert products._maker(cpuinfo) == "AuthenticAMD"
    monkeypatch.setattr("platform.processor", lambda: "arm")
    assert products._maker(cpuinfo) == "arm"
    cpuinfo.write_text("processor\t: 0\nvendor_id\t: GenuineIntel\n")
    assert products._maker(cpuinfo) == "GenuineIntel"
    cpuinfo.write_text("processor\t: 0\nCPU implementer\t: 0x41\n")  # ARM
    assert products._maker(cpuinfo) is None


class Own(nn.Linear):
    """A linear layer of another kind."""


def test_layers_of_a_model(forced: list[tuple[int, ...]]) -> None:
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
