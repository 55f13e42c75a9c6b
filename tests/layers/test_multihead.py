"""Attention modules and layers by themselves: against fairseq's, their calls, and their weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.modules import MultiheadAttention

from diet_mt.layers.multihead import AttentionCall, DecoderCall, PositionalAttention
from diet_mt.models.diet_transformer import DietTransformerModel

from ..toy import (
    EOS,
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


@each_side
def test_weights_and_their_initial_values_are_fairseqs(kind: dict[str, Any]) -> None:
    torch.manual_seed(1)
    ours = PositionalAttention(E, H, scale=D**-0.5, **kind).state_dict()
    torch.manual_seed(1)
    theirs = MultiheadAttention(E, H, **kind).state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_fairseqs_signature_is_refused() -> None:
    """It would compute without positions, masks and caches, unnoticed."""
    model = build("diet-rel")
    x, y = torch.randn(S, B, 12), torch.randn(T, B, 16)
    encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
    for layer, given, named in (
        (encoder, (x, None), "AttentionCall .* not NoneType"),
        (decoder, (y, x), "DecoderCall .* not Tensor"),
        (decoder, (y, AttentionCall()), "DecoderCall .* not AttentionCall"),
        (decoder.self_attn, (y, y, y), "AttentionCall .* not Tensor"),
        (decoder.encoder_attn, (y, x, DecoderCall(AttentionCall())), "not DecoderCall"),
    ):
        with pytest.raises(TypeError, match=named):
            layer(*given)


FLAGS = ("checkpoint_activations", "offload_activations")


@pytest.mark.parametrize("randomized", [None, 23])
@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_gradients_are_those_without_checkpointing(encoding: str, randomized: int | None) -> None:
    """torch computes a layer again in the backward pass, from the same call object: its tensors are
    differentiated through as well, and its positions are the same.
    """
    batch = collate(sources(), "left"), None, collate(targets())
    options = {"position_randomized": randomized}
    plain = build(encoding, **options)
    torch.manual_seed(7)
    expected = gradients(plain, *batch)
    for flag in FLAGS:
        wrapped = build(encoding, **options, **{flag: True})
        tables = position_parameters(wrapped)
        for _ in range(2):  # a graph that is kept by mistake fails the second time
            torch.manual_seed(7)
            with times_computed(wrapped) as times:
                grads = gradients(wrapped, *batch)
            assert set(times.values()) == {2}, "in the forward pass, and again in the backward pass"
            for name, gradient in expected.items():
                close(grads[name], gradient)
                assert gradient.any() or name not in tables, name
    with torch.no_grad(), times_computed(wrapped) as times:
        wrapped(collate(sources()), None, collate(targets()))
    assert set(times.values()) == {1}


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
    assert written == {("cross", 2)}
    close(attn, places(model, alignment_layer=2)[1])
    # In a decoding step, too.
    encoder_out, state = model.encoder(collate(sources()), None), dict[str, Any]()
    with torch.no_grad(), attention_calls(model) as calls:
        model.decoder(torch.full((5, 1), EOS), encoder_out, incremental_state=state)
    assert {place for place, call in calls.items() if call.weights is not None} == written
