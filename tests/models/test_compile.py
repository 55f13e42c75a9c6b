"""torch.compile takes the models as they are, and computes what they do, also at other lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import compiled
from diet_mt.nn.cross_entropy import from_features

from ..toy import PAD, build, close, collate, each_encoding, sources, targets

dynamo = pytest.importorskip("torch._dynamo")
pytestmark = pytest.mark.skipif(not dynamo.is_dynamo_supported(), reason="not on this Python")


def test_other_lengths_compile_too() -> None:
    model = build("diet-rel").eval()
    graph = torch.compile(model, backend="eager", dynamic=True)
    for lengths in ((5, 3), (7, 4), (9, 6)):
        source, previous = collate(sources(lengths)), collate(targets(lengths))
        close(graph(source, None, previous)[0], model(source, None, previous)[0])


@each_encoding
def test_training_is_one_graph(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing, encoder_layers=1, decoder_layers=1).train()
    source, previous = collate(sources(), "left"), collate(targets())

    def loss(source: Tensor, previous: Tensor) -> Tensor:
        features, _ = model(source, None, previous, features_only=True)
        weight = model.decoder.output_projection.weight
        total, _ = from_features(features.flatten(0, 1), weight, previous.flatten(), 0.1, PAD)
        return total

    dynamo.reset()  # graphs of other models, which torch counts together
    graph = torch.compile(loss, backend="eager", fullgraph=True)
    expected = gradients(model, loss, source, previous)
    for name, found in gradients(model, graph, source, previous).items():
        close(found, expected[name])


def gradients(
    model: DietTransformerModel, loss: Callable[..., Tensor], *batch: Tensor
) -> dict[str, Tensor]:
    model.zero_grad()
    value = loss(*batch)
    value.backward()
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": value.detach(), **grads}


def test_layers_share_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    made = torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, **how: made(f, backend=backend, **how))
    compiled.compiled.cache_clear()
    plain = build("diet-rel", encoder_layers=3).train()
    model = build("diet-rel", encoder_layers=3, compile=True).train()
    model.load_state_dict(plain.state_dict())
    for lengths in ((7, 3, 5, 1, 6), (5, 3), (8, 4, 2)):
        source, previous = collate(sources(lengths), "left"), collate(targets(lengths))
        close(model(source, None, previous)[0], plain(source, None, previous)[0])
    compiled.compiled.cache_clear()
    assert len(graphs) == 2  # one for each kind of layer
