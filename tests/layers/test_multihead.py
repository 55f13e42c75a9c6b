"""Attention modules and layers by themselves: against fairseq's, their calls, and their weights."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from diet_mt.layers.multihead import AttentionCall, DecoderCall, PositionalAttention
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import PositionTerms

from ..toy import (
    KINDS_OF_ENCODING,
    attention_calls,
    build,
    close,
    collate,
    gradients,
    position_parameters,
    sources,
    targets,
    times_computed,
)

B, H, T, S, D = 2, 3, 5, 7, 4
E, E_SOURCE = H * D, 10

SELF: dict[str, Any] = {"self_attention": True}
CROSS: dict[str, Any] = {"encoder_decoder_attention": True, "kdim": E_SOURCE, "vdim": E_SOURCE}
each_side = pytest.mark.parametrize("kind", [SELF, CROSS], ids=["self", "cross"])


def module(**kind: Any) -> PositionalAttention:
    torch.manual_seed(1)
    built = PositionalAttention(E, H, scale=D**-0.5, **kind).double()
    for name, parameter in built.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)  # fairseq starts some of them at 0
    return built


def vectors(length: int, width: int) -> Tensor:
    return torch.randn(length, B, width, dtype=torch.float64)


def inputs(kind: dict[str, Any]) -> tuple[Tensor, Tensor | None, int]:
    """Query (T, B, E), source (S, B, E') or None, and the number of keys."""
    return (vectors(T, E), None, T) if kind is SELF else (vectors(T, E), vectors(S, E_SOURCE), S)


def by_head(attention: PositionalAttention, query: Tensor, source: Any, **call: Any) -> Tensor:
    """The weights (B, H, T, S)."""
    weights = attention(query, source, AttentionCall(need_weights=True, **call))[1]
    assert weights is not None
    return weights


@each_side
def test_weights_and_their_initial_values_are_fairseqs(kind: dict[str, Any]) -> None:
    torch.manual_seed(1)
    ours = PositionalAttention(E, H, scale=D**-0.5, **kind).state_dict()
    torch.manual_seed(1)
    theirs = MultiheadAttention(E, H, **kind).state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


class Loud(PositionTerms):
    """Keys at padding are 0."""

    def keys(self, k: Tensor, padding: Tensor | None) -> Tensor:
        return 2 * k if padding is None else k.masked_fill(padding[:, None, :, None], 0.0)


class Mixed(Loud):
    mixes_keys = True


@each_side
def test_mixed_keys_are_given_the_padding_and_never_masked(kind: dict[str, Any]) -> None:
    attention = module(**kind)
    query, source, keys = inputs(kind)
    padding = torch.zeros(B, keys, dtype=torch.bool)
    padding[0, 3:] = True
    masked = by_head(attention, query, source, positions=Loud(), key_padding=padding)
    mixed = by_head(attention, query, source, positions=Mixed(), key_padding=padding)
    assert not masked[0, ..., 3:].any()
    assert mixed[0, ..., 3:].all()
    # Keys that were set to 0 have the logit 0, all alike.
    close(mixed[0, ..., 3:], mixed[0, ..., 3:4].expand(-1, -1, keys - 3))


def test_fairseqs_signature_is_refused() -> None:
    """It would compute without positions, masks and caches, unnoticed."""
    model = build("diet-rel")
    x, y, source = vectors(S, 12), vectors(T, 16), vectors(S, 12)
    encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
    padding = torch.zeros(B, S, dtype=torch.bool)
    for layer, given, named in (
        (encoder, (x, padding), "AttentionCall .* not Tensor"),
        (encoder, (x, None), "AttentionCall .* not NoneType"),
        (encoder, (x,), "call"),
        (decoder, (y, source), "DecoderCall .* not Tensor"),
        (decoder, (y, AttentionCall()), "DecoderCall .* not AttentionCall"),
        (decoder, (y, source, padding, {}), "takes"),
        (decoder.self_attn, (y, y, y), "AttentionCall .* not Tensor"),
        (decoder.encoder_attn, (y, source, DecoderCall(AttentionCall())), "not DecoderCall"),
    ):
        with pytest.raises(TypeError, match=named):
            layer(*given)
    with pytest.raises(TypeError, match="encoder_padding_mask"):
        encoder(x, encoder_padding_mask=padding)
    with pytest.raises(FrozenInstanceError):
        AttentionCall().causal = True  # type: ignore[misc]


FLAGS = ("checkpoint_activations", "offload_activations")


@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_gradients_are_those_without_checkpointing(encoding: str) -> None:
    """torch computes a layer again in the backward pass, from the same call object: its tensors are
    differentiated through as well.
    """
    batch = collate(sources(), "left"), None, collate(targets())
    expected = gradients(build(encoding), *batch)
    for flag in FLAGS:
        wrapped = build(encoding, **{flag: True})
        tables = position_parameters(wrapped)
        for _ in range(2):  # a graph that is kept by mistake fails the second time
            with times_computed(wrapped) as times:
                grads = gradients(wrapped, *batch)
            assert set(times.values()) == {2}, "in the forward pass, and again in the backward pass"
            for name, gradient in expected.items():
                close(grads[name], gradient)
                assert gradient.any() or name not in tables, name
    with torch.no_grad(), times_computed(wrapped) as times:
        wrapped(collate(sources()), None, collate(targets()))
    assert set(times.values()) == {1}


@pytest.mark.parametrize("flag", FLAGS)
def test_a_call_object_is_differentiated_through(flag: str) -> None:
    """A bias that is no parameter of the layer, and segments that are tensors."""

    def outcome(**options: Any) -> list[Tensor]:
        layer = build("none", **options).encoder.layers[0]
        torch.manual_seed(5)
        shapes = (3, S, S), (B, 3, S, 4), (B, 1, S, 4), (S, B, 12)
        bias, query, key, x = (torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes)
        out = layer(x, AttentionCall(PositionTerms(bias), segments=(query, key)))
        return list(torch.autograd.grad(out.sin().sum(), (x, bias, query, key)))

    for one, other in zip(outcome(**{flag: True}), outcome(), strict=True):
        assert other.any()
        close(one, other)


LAST = ("cross", 2)


def places(model: DietTransformerModel, **given: int) -> tuple[set[tuple[str, int]], Any]:
    """The attention modules that returned weights in a whole pass, and ``extra["attn"]``."""
    with attention_calls(model) as calls:
        _, extra = model(collate(sources(), "left"), None, collate(targets()), **given)
    assert len(calls) == 2 + 3 + 3
    return {place for place, call in calls.items() if call.weights is not None}, extra["attn"][0]


# With nothing in the logits, and with a bias that could be taken as a reason to write weights.
@pytest.mark.parametrize("encoding", ["none", "diet-rel", "shaw"])
def test_weights_are_written_only_where_they_are_read(encoding: str) -> None:
    model = build(encoding)
    for mode in (True, False):
        assert places(model.train(mode)) == (set(), None)
        for layer in range(3):
            written, attn = places(model, alignment_layer=layer)
            assert written == {("cross", layer)}
            assert attn.shape == (5, 6, 7)
    model.decoder.need_attn = True
    assert places(model.train()) == (set(), None)
    model.eval().make_generation_fast_(need_attn=True)  # --print-alignment
    written, attn = places(model)
    assert written == {LAST}
    close(attn, places(model, alignment_layer=2)[1])


@torch.no_grad()
@pytest.mark.parametrize("need_attn", [False, True])
@pytest.mark.parametrize("encoding", ["none", "diet-rel", "shaw"])
def test_weights_of_decoding_steps(encoding: str, need_attn: bool) -> None:
    model = build(encoding).eval()
    model.make_generation_fast_(need_attn=need_attn)
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
