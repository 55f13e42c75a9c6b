"""Without dropout, training, validation and inference compute the same: positions are in all."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diet_mt.nn import attention

from ..toy import (
    KINDS_OF_ENCODING,
    PRE_NORM,
    attention_modules,
    build,
    close,
    collate,
    copy_content_weights,
    each_encoding,
    sources,
    targets,
)

BATCH = collate(sources(), "left"), None, collate(targets())


@pytest.mark.parametrize(
    ("fused", "norm"), [(False, {}), (True, PRE_NORM)], ids=["own", "fused-pre-norm"]
)
@each_encoding
def test_train_equals_eval(
    encoding: str,
    sharing: str | None,
    norm: dict[str, Any],
    fused: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With gradients and without, whichever kernel serves at inference; and not without the
    encoding.
    """
    model = build(encoding, sharing, **norm).train()
    training, _ = model(*BATCH)
    plain = build("none", **norm)
    copy_content_weights(model, plain)
    assert torch.equal(plain.train()(*BATCH)[0], training) == (encoding == "none")
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: fused)
    model.eval()
    for need_attn in (True, False):  # fairseq-generate sets False unless it prints alignments
        model.decoder.need_attn = need_attn
        close(model(*BATCH)[0], training)
        with torch.no_grad():
            close(model(*BATCH)[0], training)


@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_dropout_is_drawn_in_training_only(encoding: str) -> None:
    model = build(encoding, attention_dropout=0.5)
    assert not torch.allclose(model(*BATCH)[0], model(*BATCH)[0], rtol=0, atol=1e-6)
    model.eval()
    assert torch.equal(model(*BATCH)[0], model(*BATCH)[0])


@pytest.mark.parametrize("encoding", ["diet-rel", "shaw", "rotary"])
def test_retained_dropout_of_attention(encoding: str) -> None:
    """--retain-dropout --retain-dropout-modules MultiheadAttention keeps ours, and only ours; also
    step by step, as in fairseq's own attention.
    """
    model = build(encoding, attention_dropout=0.5, dropout=0.5)
    model.make_generation_fast_(retain_dropout=True, retain_dropout_modules=["MultiheadAttention"])
    modules = attention_modules(model).values()
    assert all(module.dropout_module.apply_during_inference for module in modules)
    assert not model.encoder.layers[0].dropout_module.apply_during_inference
    model.eval()
    assert not torch.allclose(model(*BATCH)[0], model(*BATCH)[0], rtol=0, atol=1e-6)
    with torch.no_grad():
        source, tokens = model.encoder(BATCH[0], None), BATCH[2]
        drawn = [model.decoder(tokens[:, :1], source, incremental_state={})[0] for _ in range(2)]
    assert not torch.allclose(*drawn, rtol=0, atol=1e-6)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_retained_dropout_of_layers_and_stacks(side: str) -> None:
    model = build("diet-rel", dropout=0.5)
    own = f"Transformer{side.capitalize()}"
    model.make_generation_fast_(retain_dropout=True, retain_dropout_modules=[own, f"{own}Layer"])
    for other in ("encoder", "decoder"):
        stack = getattr(model, other)
        for module in (stack, stack.layers[0]):
            assert module.dropout_module.apply_during_inference == (other == side)
