"""Attention weights are written only where somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from diet_mt.models.diet_transformer import DietTransformerModel

from ..toy import attention_calls, build, close, collate, sources, targets

LAST = ("cross", 2)


def asked(model: DietTransformerModel, **given: int) -> tuple[set[tuple[str, int]], Any]:
    """The attention modules that returned weights in a whole pass, and ``extra["attn"]``."""
    with attention_calls(model) as calls:
        _, extra = model(collate(sources(), "left"), None, collate(targets()), **given)
    assert len(calls) == 2 + 3 + 3
    return {place for place, call in calls.items() if call.weights is not None}, extra["attn"][0]


def fast(model: DietTransformerModel, **given: bool) -> DietTransformerModel:
    """As fairseq-generate prepares a model, which can do nothing else afterwards."""
    model.eval()
    model.make_generation_fast_(**given)
    return model


def wanting(model: DietTransformerModel) -> DietTransformerModel:
    """What --print-alignment sets; fairseq itself trains no model that is made fast."""
    model.decoder.need_attn = True
    return model


NOBODY: dict[str, Callable[[DietTransformerModel], object]] = {
    "training": lambda model: model.train(),
    "training where generation would ask": lambda model: wanting(model).train(),
    "validation": lambda model: model.eval(),
    "generation": lambda model: fast(model, need_attn=False),
    "generation that is not asked": lambda model: fast(model),
}


# With nothing in the logits, and with a bias that would be taken as a reason to write weights.
some = pytest.mark.parametrize("encoding", ["none", "diet-rel", "shaw"])


@pytest.mark.parametrize("when", NOBODY, ids=lambda name: name.replace(" ", "-"))
@some
def test_nobody_asks(encoding: str, when: str) -> None:
    model = build(encoding)
    NOBODY[when](model)
    assert asked(model) == (set(), None)


@some
def test_generation_with_need_attn_has_those_of_the_last_layer(encoding: str) -> None:
    """--print-alignment."""
    model = fast(build(encoding), need_attn=True)
    places, attn = asked(model)
    assert places == {LAST}
    assert attn.shape == (5, 6, 7)
    close(attn, asked(model, alignment_layer=2)[1])


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_layer_that_is_asked_for_alignment_has_them(layer: int, mode: str) -> None:
    model = getattr(build("diet-rel"), mode)()
    places, attn = asked(model, alignment_layer=layer)
    assert places == {("cross", layer)}
    assert attn.shape == (5, 6, 7)


@torch.no_grad()
@pytest.mark.parametrize("need_attn", [False, True])
@some
def test_steps_of_decoding(encoding: str, need_attn: bool) -> None:
    model = fast(build(encoding), need_attn=need_attn)
    source, previous = collate(sources((7, 4)), "left"), torch.randint(4, 44, (2, 3))
    full = model(source, None, previous)[1]["attn"][0]
    encoder_out = model.encoder(source, None)
    state: dict[str, Any] = {}
    for t in range(3):
        with attention_calls(model) as calls:
            _, extra = model.decoder(previous[:, : t + 1], encoder_out, incremental_state=state)
        written = {place for place, call in calls.items() if call.weights is not None}
        assert written == ({LAST} if need_attn else set())
        if need_attn:
            close(extra["attn"][0][:, 0], full[:, t])
        else:
            assert extra["attn"] == [None]
            assert full is None
