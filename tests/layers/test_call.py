"""A layer is called with one object that holds its positions; in fairseq's form it refuses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.layers.call import AttentionCall, DecoderCall, for_layers
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import LayerPositions
from diet_mt.positions.layer import NOTHING

from ..toy import (
    KINDS_OF_ENCODING,
    build,
    close,
    collate,
    position_parameters,
    sources,
    targets,
    times_computed,
)

B, S, T = 2, 7, 6
FLAGS = ("checkpoint_activations", "offload_activations")


def vectors(length: int, width: int) -> Tensor:
    return torch.randn(length, B, width, dtype=torch.float64)


@pytest.fixture
def model() -> DietTransformerModel:
    return build("diet-rel")


class TestFairseqsForm:
    """It would compute without positions, masks and caches, and nobody would notice."""

    def test_encoder_layer(self, model: DietTransformerModel) -> None:
        layer, x = model.encoder.layers[0], vectors(S, 12)
        padding = torch.zeros(B, S, dtype=torch.bool)
        with pytest.raises(TypeError, match=r"EncoderLayer takes .*AttentionCall .* not Tensor"):
            layer(x, padding)
        with pytest.raises(TypeError, match=r"DietEncoderLayer takes .* not NoneType"):
            layer(x, None)
        with pytest.raises(TypeError, match="encoder_padding_mask"):
            layer(x, encoder_padding_mask=padding)
        with pytest.raises(TypeError, match="call"):
            layer(x)

    def test_decoder_layer(self, model: DietTransformerModel) -> None:
        layer, x, source = model.decoder.layers[0], vectors(T, 16), vectors(S, 12)
        with pytest.raises(TypeError, match=r"DietDecoderLayer takes .*DecoderCall .* not Tensor"):
            layer(x, source)
        with pytest.raises(TypeError, match=r"takes .*DecoderCall .* not AttentionCall"):
            layer(x, AttentionCall())
        with pytest.raises(TypeError):
            layer(x, source, torch.zeros(B, S, dtype=torch.bool), {})
        with pytest.raises(TypeError, match="incremental_state"):
            layer(x, incremental_state={})

    def test_attention_module(self, model: DietTransformerModel) -> None:
        own, cross = model.decoder.layers[0].self_attn, model.decoder.layers[0].encoder_attn
        x, source = vectors(T, 16), vectors(S, 12)
        for attention, key in ((own, x), (cross, source)):
            with pytest.raises(TypeError, match=r"PositionalAttention takes .* not Tensor"):
                attention(x, key, key)
            with pytest.raises(TypeError, match="call"):
                attention(x, key)
            with pytest.raises(TypeError, match="key"):
                attention(query=x, key=key, value=key)
            with pytest.raises(TypeError, match=r"takes .*AttentionCall .* not DecoderCall"):
                attention(x, key, DecoderCall(AttentionCall()))


def test_a_call_says_nothing_unless_it_is_told() -> None:
    call = AttentionCall()
    assert call.positions is NOTHING
    assert not call.causal
    assert not call.need_weights
    assert call.padding is call.segments is call.cache is None
    with pytest.raises(FrozenInstanceError):
        call.causal = True  # type: ignore[misc]


def test_a_call_alone_computes_what_the_encoder_computes(model: DietTransformerModel) -> None:
    x = vectors(S, 12)
    positions = for_layers(model.encoder.self_attn_positions, 2, range(S), range(S))
    layer = model.encoder.layers[1]
    found = layer(x, AttentionCall(positions[1]))
    plain = layer(x, AttentionCall())
    assert not torch.allclose(found, plain), "without positions it is another result"
    attended, _ = layer.self_attn(x, None, AttentionCall(LayerPositions(positions[1].bias)))
    hidden = layer.self_attn_layer_norm(x + attended)
    more = layer.fc2(torch.relu(layer.fc1(hidden)))
    close(found, layer.final_layer_norm(hidden + more))


def gradients(built: DietTransformerModel) -> dict[str, Tensor]:
    """Of one step, by parameter; the loss tells all outputs apart."""
    built.zero_grad()
    logits, _ = built(collate(sources(), "left"), None, collate(targets()))
    logits.sin().sum().backward()
    found = {}
    for name, parameter in built.named_parameters():
        assert parameter.grad is not None, name
        found[name] = parameter.grad.clone()
    return found


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_gradients_are_those_without_checkpointing(encoding: str, flag: str) -> None:
    """torch computes a layer again in the backward pass, from the same call object: what the call
    holds is differentiated through as well.
    """
    expected = gradients(build(encoding))
    wrapped = build(encoding, **{flag: True})
    tables = position_parameters(wrapped)
    for _ in range(2):  # a graph that is kept by mistake fails the second time
        with times_computed(wrapped) as times:
            found = gradients(wrapped)
        assert set(times.values()) == {2}, "in the forward pass, and again in the backward pass"
        for name, gradient in expected.items():
            close(found[name], gradient)
            assert gradient.any() or name not in tables, name


@pytest.mark.parametrize("flag", FLAGS)
def test_a_call_object_is_differentiated_through(flag: str) -> None:
    """A bias that is no parameter of the layer, and positions and segments that are tensors."""

    def outcome(**options: Any) -> list[Tensor]:
        layer = build("none", **options).encoder.layers[0]
        torch.manual_seed(5)
        bias = torch.randn(3, S, S, dtype=torch.float64, requires_grad=True)
        query = torch.randn(B, 3, S, 4, dtype=torch.float64, requires_grad=True)
        key = torch.randn(B, 1, S, 4, dtype=torch.float64, requires_grad=True)
        x = vectors(S, 12).requires_grad_()
        call = AttentionCall(LayerPositions(bias), segments=(query, key))
        out = layer(x, call)
        return list(torch.autograd.grad(out.sin().sum(), (x, bias, query, key)))

    expected, found = outcome(), outcome(**{flag: True})
    for one, other in zip(found, expected, strict=True):
        assert other.any()
        close(one, other)


def test_without_gradients_nothing_is_computed_again() -> None:
    built = build("diet-rel", checkpoint_activations=True)
    with torch.no_grad(), times_computed(built) as times:
        built(collate(sources()), None, collate(targets()))
    assert set(times.values()) == {1}
