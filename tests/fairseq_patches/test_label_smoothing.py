"""fairseq's criterion gives the same loss, gradients and logged values with the replacement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from torch import Tensor, nn

import diet_mt.fairseq_patches.label_smoothing as label_smoothing

from ..toy import EOS, SAME_WIDTH, ToyTask, build, collate, sources, targets

Answer = tuple[dict[str, Any], dict[str, Tensor]]


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The replacement in place, for this test alone; the functions that computed a loss."""
    found: list[str] = []

    def watched(name: str) -> Callable[..., Any]:
        own = getattr(label_smoothing, name)

        def spy(*given: Any, **how: Any) -> Any:
            found.append(name)
            return own(*given, **how)

        return spy

    for name in ("from_features", "from_logits"):
        monkeypatch.setattr(label_smoothing, name, watched(name))
    return found


def criterion(
    eps: float = 0.1, kind: Any = LabelSmoothedCrossEntropyCriterion, **options: Any
) -> Any:
    made = kind(ToyTask(), sentence_avg=False, label_smoothing=eps, **options)
    made.padding_idx = 0
    return made


class Original(LabelSmoothedCrossEntropyCriterion):
    """fairseq's own code: as any subclass, it is left alone."""


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
    for sample in samples or (batch(),):
        loss, size, entries = made(model, sample)
        (loss * factor).backward()
        assert entries["loss"].item() == loss.item()
        for key, value in {**entries, "size": size}.items():
            logged[key] = logged.get(key, 0) + float(value)
    named = model.named_parameters()
    return logged, {name: p.grad.clone() for name, p in named if p.grad is not None}


def assert_same(found: Answer, expected: Answer, rel: float = 1e-6, atol: float = 1e-6) -> None:
    assert found[0] == pytest.approx(expected[0], rel=rel)
    assert found[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-5, atol=atol, msg=name)


TIED = {**SAME_WIDTH, "share_all_embeddings": True}


@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("options", [{}, TIED], ids=["own-output", "tied"])
@pytest.mark.parametrize("precision", [torch.float64, torch.float32], ids=str)
def test_a_training_step(
    calls: list[str], precision: torch.dtype, options: dict[str, Any], eps: float
) -> None:
    model = build("diet-rel", **options).to(precision)
    expected = answer(criterion(eps, Original), model)
    assert calls == []
    # fairseq takes the logarithms in float32, also of a float64 model.
    assert_same(answer(criterion(eps), model), expected, atol=2e-5)
    assert calls == ["from_features"]


def test_several_batches_to_an_update(calls: list[str]) -> None:
    model = build("diet-abs", **TIED)
    samples = batch(slice(0, 2)), batch(slice(2, 5))
    expected = answer(criterion(kind=Original), model, *samples, factor=128.0)
    assert_same(answer(criterion(), model, *samples, factor=128.0), expected, atol=2e-3)
    assert calls == ["from_features"] * 2


def test_the_same_values_are_dropped(calls: list[str]) -> None:
    model = build("diet-rel", dropout=0.3)
    found = []
    for kind in (Original, LabelSmoothedCrossEntropyCriterion):
        torch.manual_seed(5)
        found.append(answer(criterion(kind=kind), model))
    assert_same(found[1], found[0], atol=2e-5)


def test_checkpointed_activations(calls: list[str]) -> None:
    model = build("diet-rel", checkpoint_activations=True)
    expected = answer(criterion(kind=Original), model)
    assert_same(answer(criterion(), model), expected, atol=2e-5)
    assert calls == ["from_features"]


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


@pytest.mark.parametrize("depth", [1, 2])
def test_a_wrapped_model(calls: list[str], depth: int) -> None:
    model: nn.Module = build("diet-rel", **TIED)
    for _ in range(depth):
        model = Wrapper(model)
    expected = answer(criterion(kind=Original), model)
    assert_same(answer(criterion(), model), expected, atol=2e-5)
    assert calls == ["from_logits"]


def with_hook(model: Any) -> None:
    model.decoder.output_projection.register_forward_hook(lambda *given: given[2] * 0.5)


def with_bias(model: Any) -> None:
    model.decoder.output_projection.bias = nn.Parameter(torch.randn(44).double())


def with_another_class(model: Any) -> None:
    model.decoder.output_projection.__class__ = type("Other", (nn.Linear,), {})


def with_another_output(model: Any) -> None:
    model.decoder.output_layer = lambda features: model.decoder.output_projection(features).tanh()


@pytest.mark.parametrize("change", [with_hook, with_bias, with_another_class, with_another_output])
def test_another_output_layer(calls: list[str], change: Any) -> None:
    model = build("diet-rel")
    change(model)
    expected = answer(criterion(kind=Original), model)
    assert_same(answer(criterion(), model), expected, atol=2e-5)
    assert calls == ["from_logits"]


@pytest.mark.parametrize(
    "options", [{"report_accuracy": True}, {"ignore_prefix_size": 1}], ids=lambda o: next(iter(o))
)
def test_what_reads_log_probabilities(calls: list[str], options: dict[str, Any]) -> None:
    model = build("diet-rel")
    expected = answer(criterion(kind=Original, **options), model)
    assert answer(criterion(**options), model)[0] == expected[0]
    assert calls == []


def test_adaptive_softmax_is_fairseqs(calls: list[str]) -> None:
    model = build("diet-rel", adaptive_softmax_cutoff="10,20")
    made = criterion()
    output = model(**batch()["net_input"])
    assert not label_smoothing._smoothes_alone(made, model, True)
    assert output[0].size(-1) == model.decoder.output_embed_dim


def test_values_of_each_token(calls: list[str]) -> None:
    model = build("diet-rel")
    loss, _, logged = criterion()(model, batch(), reduce=False)
    expected, _, _ = criterion(kind=Original)(model, batch(), reduce=False)
    assert torch.equal(loss, expected)
    assert logged["loss"].numel() > 1
    assert calls == []


def test_validation_is_fairseqs(calls: list[str]) -> None:
    model = build("diet-rel").eval()
    expected = answer(criterion(kind=Original), model)
    assert answer(criterion(), model)[0] == expected[0]
    assert calls == []


class OfSomebodyElse(nn.Module):
    """A model that is none of ours, though it computes what ours does."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = build("diet-rel")
        self.get_normalized_probs = self.inner.get_normalized_probs
        self.get_targets = self.inner.get_targets

    def forward(self, **given: Any) -> Any:
        return self.inner(**given)


def test_other_models_are_fairseqs(calls: list[str]) -> None:
    answer(criterion(), OfSomebodyElse())
    assert calls == []


def test_autocast_makes_logits(calls: list[str]) -> None:
    model = build("diet-rel").float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _, _ = criterion()(model, batch())
        expected, _, _ = criterion(kind=Original)(model, batch())
    assert calls == ["from_logits"]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-3)
