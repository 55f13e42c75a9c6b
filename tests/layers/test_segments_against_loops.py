"""Every attention module of an encoder with segments, and its input, against the loops of
``tests/oracle/``.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.nn import attention
from diet_mt.positions import factors

from .. import oracle
from ..positions.cases import ALL
from ..toy import SIZES, Call, attention_calls, close, real
from ..toy_sentences import (
    batch,
    build,
    each_sentence_encoder,
    every_sentence_encoder,
    rows,
    segments_of_rows,
)
from .test_against_loops import by_loops, raw_tables, setting

WIDTH = SIZES["encoder_embed_dim"]


def expected(
    model: DietRobertaModel, encoding: str, sharing: str | None, layer: int, call: Call
) -> Tensor:
    """Output (T, B, E) of the loops."""
    stack, place = model.encoder.sentence_encoder, ("encoder", layer)
    at = setting(place, encoding, sharing, stack.self_attn_positions, call, first_is_cls=True)
    more = {}
    if stack.segment_positions is not None:
        # One table for all layers where positions have one, otherwise one for each head and layer.
        mode = "layer-wise" if sharing == "layer-wise" else "none"
        own = setting(place, encoding, mode, stack.segment_positions, call)
        padded = [[*row, *[0] * (7 - len(row))] for row in segments_of_rows()]
        more["more"] = oracle.segment_logit(own, padded)
    return by_loops(ALL[encoding].equations(at), call, at.head_dim, **more)[0]


@every_sentence_encoder
def test_every_attention_module_equals_the_loops(
    encoding: str, sharing: str | None, segments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appended: factors as columns of queries and keys, next to those of the segments."""
    model = build(encoding, sharing, segments)
    for kernel, side in (("own", "left"), ("fused", "right"), ("appended", "right")):
        monkeypatch.setattr(attention, "_fused_pays", lambda *_, fused=kernel != "own": fused)
        if kernel == "appended":
            monkeypatch.setattr(factors, "APPEND_FROM", 1)
        with attention_calls(model) as calls:
            model(**batch(side))
        assert len(calls) == SIZES["encoder_layers"]
        for (_, layer), call in calls.items():
            by_hand = expected(model, encoding, sharing, layer, call).transpose(0, 1)
            actual = call.output.transpose(0, 1)
            assert actual.shape == by_hand.shape
            for one, other in zip(real(actual, rows()), real(by_hand, rows()), strict=True):
                close(one, other)


@pytest.mark.parametrize("side", ["left", "right"])
@each_sentence_encoder
def test_the_input_equals_the_formula(
    encoding: str, sharing: str | None, segments: str, side: str
) -> None:
    """Word, position from the first real token on, and segment; then the layer norm of BERT."""
    model = build(encoding, sharing, segments)
    stack = model.encoder.sentence_encoder
    with attention_calls(model) as calls:
        model(**batch(side))
    actual = real(calls["encoder", 0].query.transpose(0, 1), rows())
    tables, of_segments = raw_tables(stack.embed_positions), raw_tables(stack.segment_input)
    words = torch.zeros(len(stack.embed_tokens.weight), WIDTH, dtype=torch.float64)
    words[:, : stack.embed_tokens.weight.size(1)] = stack.embed_tokens.weight
    # Where sinusoids are added, which cannot be small, words are as large as in translation.
    size = WIDTH**0.5 if encoding in ("sinusoidal", "shape", "cape") else 1.0
    for sentence, own, vectors in zip(rows(), segments_of_rows(), actual, strict=True):
        for position, token in enumerate(sentence):
            by_hand = words[token] * size
            for c in range(WIDTH):
                by_hand[c] += ALL[encoding].input_row(tables, position, c, WIDTH)
                if segments == "input":
                    by_hand[c] += oracle.segment_row(of_segments, own[position], c)
            normed = torch.nn.functional.layer_norm(by_hand, (WIDTH,), eps=1e-5)
            # Sinusoids are stored in float32.
            torch.testing.assert_close(vectors[position], normed, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("encoding", "sharing", "segments"),
    [
        ("diet-rel", "none", "per-head"),
        ("diet-abs", "layer-wise", "per-head"),
        ("shaw", "head-wise", "per-head"),
        ("learned", None, "input"),
        ("linformer", "none", "input"),
    ],
)
def test_gradients_of_segments(encoding: str, sharing: str | None, segments: str) -> None:
    """torch.autograd.gradcheck: against finite differences, in float64."""
    model = build(encoding, sharing, segments)
    given = batch()
    given = {name: tensor[:2] for name, tensor in given.items()}
    stack = model.encoder.sentence_encoder
    tables = {
        f"encoder.sentence_encoder.{name}": parameter.detach().clone().requires_grad_()
        for name, parameter in stack.named_parameters()
        if name.startswith("segment_")
    }
    some = torch.randn(5, dtype=torch.float64)

    def run(*values: Tensor) -> Tensor:
        swapped = dict(zip(tables, values, strict=True))
        out, _ = torch.func.functional_call(model, swapped, kwargs=given)
        return out[:, :3, :5] @ some

    assert torch.autograd.gradcheck(run, tuple(tables.values()), fast_mode=True)
