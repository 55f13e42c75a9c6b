"""``--optimizer adam`` makes the same updates as fairseq's own code, in every precision."""

from __future__ import annotations

import io
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from fairseq import utils
from fairseq.optim import FP16Optimizer, MemoryEfficientFP16Optimizer
from fairseq.optim.adam import Adam, FairseqAdam
from fairseq.optim.fairseq_optimizer import FairseqOptimizer
from fairseq.optim.fp16_optimizer import _FP16OptimizerMixin
from torch import Tensor, nn

from diet_mt.fairseq_patches import fused_adam

SHAPES = [(7, 5), (1, 6), (6,), (40, 9), (3,)]
ROUNDING = {"cpu": 1e-6, "cuda": 1e-5}
REPLACED = [(FairseqOptimizer, "multiply_grads")] + [
    (_FP16OptimizerMixin, name)
    for name in ("_sync_fp16_grads_to_fp32", "_sync_fp32_params_to_fp16", "step", "zero_grad")
]


def options(old: bool) -> Namespace:
    return Namespace(
        optimizer="adam",
        lr=[0.02],
        adam_betas="(0.9, 0.98)",
        adam_eps=1e-3,
        weight_decay=0.1,
        use_old_adam=old,
        fp16_adam_stats=False,
        tpu=False,
    )


def parameters(dtype: torch.dtype = torch.float32, device: str = "cpu") -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(3)
    values = [torch.randn(shape, generator=generator) for shape in SHAPES]
    return [nn.Parameter(x.to(device, dtype)) for x in values]


def gradients(update: int) -> list[Tensor | None]:
    """Gradients with other strides than their parameters; the fourth is None in some updates."""
    generator = torch.Generator().manual_seed(100 + update)
    drawn = [torch.randn(shape[::-1], generator=generator) for shape in SHAPES]
    transposed: list[Tensor | None] = [x.t() for x in drawn]  # no change to one dimension
    if update in (0, 1, 5):
        transposed[3] = None
    return transposed


def groups(given: list[nn.Parameter]) -> list[dict[str, Any]]:
    return [
        {"params": given[:2]},
        {"params": given[2:], "lr": 0.005, "betas": (0.8, 0.9), "weight_decay": 0.0, "eps": 0.1},
    ]


def run(adam: Any, given: list[nn.Parameter], updates: range) -> None:
    for update in updates:
        adam.zero_grad()
        for p, gradient in zip(given, gradients(update), strict=True):
            p.grad = None if gradient is None else gradient.to(p)
        adam.multiply_grads(0.5)
        with no_synchronization(p.device.type if update else ""):
            adam.step()


@contextmanager
def no_synchronization(device: str) -> Iterator[None]:
    """A block in which the CPU may not wait for a GPU."""
    if device == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if device == "cuda":
            torch.cuda.set_sync_debug_mode("default")


def near(actual: Sequence[Tensor], expected: Sequence[Tensor], rounding: float) -> None:
    for own, exact in zip(actual, expected, strict=True):
        torch.testing.assert_close(own, exact, rtol=rounding, atol=rounding)


def test_updates_and_state() -> None:
    assert_updates("cpu")


def assert_updates(device: str) -> None:
    ended = []
    for old, kind in ((True, Adam), (False, fused_adam.FusedAdam)):
        given = parameters(device=device)
        adam = FairseqAdam(options(old), groups(given))
        assert type(adam.optimizer) is kind
        run(adam, given, range(20))
        ended.append((given, adam.state_dict()))
    (expected, old_state), (actual, new_state) = ended
    rounding = ROUNDING[device]
    near(actual, expected, rounding)
    assert new_state["param_groups"] == old_state["param_groups"]
    for number, state in old_state["state"].items():
        own = new_state["state"][number]
        assert own.keys() == state.keys()
        assert own["step"] == state["step"] == (17 if number == 3 else 20)
        for name in ("exp_avg", "exp_avg_sq"):
            near([own[name]], [state[name]], rounding)


@pytest.mark.parametrize("old", [(True, False), (False, True)], ids=["from-fairseq", "to-fairseq"])
def test_a_checkpoint_of_the_other(old: tuple[bool, bool]) -> None:
    expected = parameters()
    run(FairseqAdam(options(True), groups(expected)), expected, range(10))
    given = parameters()
    first, second = (FairseqAdam(options(each), groups(given)) for each in old)
    run(first, given, range(6))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file))
    run(second, given, range(6, 10))
    near(given, expected, ROUNDING["cpu"])


@pytest.mark.parametrize("unusual", ["amsgrad", "strides"])
def test_unusual_cases_are_updated_by_fairseq(unusual: str) -> None:
    weights = []
    for kind in (Adam, fused_adam.FusedAdam):
        p = nn.Parameter(torch.arange(6.0).view(2, 3).T if unusual == "strides" else torch.ones(6))
        adam = kind([p], amsgrad=unusual == "amsgrad", lr=0.1)
        for update in range(3):
            p.grad = torch.full_like(p, 8.0 - update)
            if kind is Adam:
                p.grad /= 4
                adam.step()
            else:
                adam.step(scale=4.0)
        weights.append(p)
    assert torch.equal(*weights)


@contextmanager
def fairseqs_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A block with fairseq's original functions."""
    with monkeypatch.context() as patched:
        for owner, name in REPLACED:
            patched.setattr(owner, name, getattr(owner, name).__wrapped__)
        patched.setattr(utils, "multi_tensor_l2norm_available", False)
        yield


PRECISIONS: dict[str, tuple[Any, torch.dtype, dict[str, bool]]] = {
    "fp16": (FP16Optimizer, torch.float16, {}),
    "fp16-not-flat": (FP16Optimizer, torch.float16, {"fp16_no_flatten_grads": True}),
    "bf16": (FP16Optimizer, torch.bfloat16, {"bf16": True}),
    "memory-efficient-fp16": (MemoryEfficientFP16Optimizer, torch.float16, {}),
    "memory-efficient-bf16": (MemoryEfficientFP16Optimizer, torch.bfloat16, {"bf16": True}),
}


def trained(precision: str, max_norm: float, old: bool, device: str) -> dict[str, list[Tensor]]:
    """20 updates as fairseq's trainer makes them; norms, weights in both precisions, state."""
    kind, dtype, flags = PRECISIONS[precision]
    scaling = {"fp16_init_scale": 4, "fp16_scale_window": 8, "fp16_scale_tolerance": 0.0}
    common = Namespace(**scaling, threshold_loss_scale=None, min_loss_scale=1e-4, **flags)
    cfg = Namespace(common=common, optimizer=options(old), optimization=Namespace())
    given = parameters(dtype, device)
    optimizer = kind.build_optimizer(cfg, given)
    masters = [p for group in optimizer.optimizer.param_groups for p in group["params"]]
    norms = []
    for update in range(20):
        optimizer.zero_grad()
        for p in masters:
            assert p.grad is None or not p.grad.any()
            p.grad = None if p.grad is None else p.grad.fill_(1.0)  # must be overwritten
        for gradient_of in (update, update + 1):  # as with --update-freq 2
            pairs = zip(given, gradients(gradient_of), strict=True)
            terms = [(p * x.to(p)).sum() for p, x in pairs if x is not None]
            optimizer.backward(torch.stack(terms).sum())
        optimizer.multiply_grads(0.25)  # exact, as fairseq scales half precision too
        norms.append(optimizer.clip_grad_norm(max_norm).float())
        with no_synchronization("" if old or update == 0 else device):
            optimizer.step()
    states = optimizer.state_dict()["state"].values()
    return {
        "norms": norms,
        "masters": [p.detach() for p in masters],
        "model": [p.detach() for p in given],
        "state": [state[name] for state in states for name in ("exp_avg", "exp_avg_sq")],
    }


def assert_precision(
    precision: str, max_norm: float, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fairseqs_own(monkeypatch):
        expected = trained(precision, max_norm, old=True, device=device)
    actual = trained(precision, max_norm, old=False, device=device)
    rounding, digits = ROUNDING[device], torch.finfo(actual["model"][0].dtype).eps
    half = "memory" in precision  # no float32 copy of the weights
    near(actual["norms"], expected["norms"], rounding)
    # Without that copy, fairseq scales gradients in half precision.
    near(actual["state"], expected["state"], digits if half and max_norm else rounding)
    near(actual["masters"], expected["masters"], digits if half else 2 * rounding)
    near(actual["model"], expected["model"], digits)


@pytest.mark.parametrize("max_norm", [0.0, 3.0], ids=["unclipped", "clipped"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_half_precision(precision: str, max_norm: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)  # index of the CPU
    monkeypatch.setattr(fused_adam, "_CHUNK", 50)  # several chunks
    assert_precision(precision, max_norm, "cpu", monkeypatch)


@pytest.mark.parametrize("max_norm", [0.0, 3.0], ids=["unclipped", "clipped"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_norm_and_clipping(
    dtype: torch.dtype, max_norm: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, others = parameters(dtype), parameters(dtype)
    for each in (given, others):
        for p, gradient in zip(each, gradients(0), strict=True):
            p.grad = None if gradient is None else gradient.clone().to(dtype)
    with fairseqs_own(monkeypatch):
        expected = utils.clip_grad_norm_(others, max_norm)
    assert utils.clip_grad_norm_(given, max_norm).item() == expected.item() > 3
    clipped, exact = ([p.grad for p in each if p.grad is not None] for each in (given, others))
    assert len(clipped) == 4
    assert all(map(torch.equal, clipped, exact))
