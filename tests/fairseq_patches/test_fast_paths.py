"""fairseq's criterion gives the same loss, gradients and logged values without logits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from torch import Tensor, nn

from diet_mt.fairseq_patches import fast_paths

from ..toy import EOS, SAME_WIDTH, ToyTask, build, collate, sources, targets

Answer = tuple[dict[str, Any], dict[str, Tensor]]


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many times a loss was computed from features."""
    counts: list[int] = []
    own = fast_paths.from_features

    def spy(*given: Any, **options: Any) -> Any:
        counts.append(1)
        return own(*given, **options)

    monkeypatch.setattr(fast_paths, "from_features", spy)
    return counts


class Original(LabelSmoothedCrossEntropyCriterion):
    """fairseq's own code: as any subclass, it is left alone."""


def criterion(
    eps: float = 0.1, kind: Any = LabelSmoothedCrossEntropyCriterion, **options: Any
) -> Any:
    made = kind(ToyTask(), sentence_avg=False, label_smoothing=eps, **options)
    made.padding_idx = 0
    return made


def batch(rows: slice = slice(None)) -> dict[str, Any]:
    inputs = targets()[rows]
    shifted = [[*row[1:], EOS] for row in inputs]
    return {
        "net_input": {
            "src_tokens": collate(sources()[rows], "left"),
            "src_lengths": None,
            "prev_output_tokens": collate(inputs),
        },
        "target": collate(shifted),
        "ntokens": sum(map(len, shifted)),
    }


def answer(made: Any, model: nn.Module, *samples: Any, factor: float = 1.0) -> Answer:
    """The logged values, summed, and the gradients of all ``samples`` together."""
    model.zero_grad()
    logged: dict[str, Any] = {}
    torch.manual_seed(5)
    for sample in samples or (batch(),):
        loss, size, entries = made(model, sample)
        (loss * factor).backward()
        assert entries["loss"].item() == loss.item()
        for key, value in {**entries, "size": size}.items():
            logged[key] = logged.get(key, 0) + float(value)
    named = model.named_parameters()
    return logged, {name: p.grad.clone() for name, p in named if p.grad is not None}


def assert_same(computed: Answer, expected: Answer, atol: float = 2e-5) -> None:
    assert computed[0] == pytest.approx(expected[0], rel=1e-6)
    assert computed[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        # fairseq takes the logarithms in float32, also of a float64 model.
        torch.testing.assert_close(computed[1][name], gradient, rtol=1e-5, atol=atol, msg=name)


TIED = {**SAME_WIDTH, "share_all_embeddings": True}


@pytest.mark.parametrize(
    ("options", "precision", "eps"),
    [
        ({}, torch.float64, 0.1),
        ({}, torch.float32, 0.1),
        (TIED, torch.float64, 0.0),
        (TIED, torch.float32, 0.1),
        ({"dropout": 0.3}, torch.float64, 0.1),
        ({"checkpoint_activations": True}, torch.float64, 0.1),
    ],
)
def test_a_training_step(
    calls: list[int], precision: torch.dtype, options: dict[str, Any], eps: float
) -> None:
    model = build("diet-rel", **options).to(precision)
    expected = answer(criterion(eps, Original), model)
    assert not calls
    assert_same(answer(criterion(eps), model), expected)
    assert calls


def test_several_batches_to_an_update(calls: list[int]) -> None:
    model = build("diet-abs", **TIED)
    samples = batch(slice(0, 2)), batch(slice(2, 5))
    expected = answer(criterion(kind=Original), model, *samples, factor=128.0)
    assert_same(answer(criterion(), model, *samples, factor=128.0), expected, atol=2e-3)
    assert len(calls) == 2


class Wrapper(nn.Module):
    """As fairseq wraps a model for data parallel training."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


def with_hook(model: Any) -> None:
    model.decoder.output_projection.register_forward_hook(lambda *given: given[2] * 0.5)


def with_bias(model: Any) -> None:
    model.decoder.output_projection.bias = nn.Parameter(torch.randn(44).double())


def with_another_output(model: Any) -> None:
    model.decoder.output_layer = lambda features: model.decoder.output_projection(features).tanh()


@pytest.mark.parametrize(
    ("change", "options"),
    [
        *((change, {}) for change in (with_hook, with_bias, with_another_output, Wrapper)),
        (nn.Module.eval, {}),
        (nn.Module.train, {"report_accuracy": True}),
        (nn.Module.train, {"ignore_prefix_size": 1}),
    ],
)
def test_what_reads_logits_is_fairseqs(
    calls: list[int], change: Any, options: dict[str, Any]
) -> None:
    model: Any = build("diet-rel")
    model = change(model) or model
    expected = answer(criterion(kind=Original, **options), model)
    assert_same(answer(criterion(**options), model), expected, atol=0)
    assert not calls


def test_adaptive_softmax_and_autocast_are_fairseqs(calls: list[int]) -> None:
    model = build("diet-rel", adaptive_softmax_cutoff="10,20")
    assert not fast_paths._smoothes_alone(criterion(), model, True)
    model = build("diet-rel").float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _, _ = criterion()(model, batch())
        expected, _, _ = criterion(kind=Original)(model, batch())
    assert loss.item() == expected.item()
    assert not calls


def test_values_of_each_token(calls: list[int]) -> None:
    model = build("diet-rel")
    loss, _, logged = criterion()(model, batch(), reduce=False)
    expected, _, _ = criterion(kind=Original)(model, batch(), reduce=False)
    assert torch.equal(loss, expected)
    assert logged["loss"].numel() > 1
    assert not calls
