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
    each_kind,
    sources,
    targets,
)


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
    """With gradients and without, whichever kernel serves at inference."""
    model = build(encoding, sharing, **norm).train()
    batch = collate(sources(), "left"), None, collate(targets())
    training, _ = model(*batch)
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: fused)
    model.eval()
    for wanted in (True, False):  # fairseq-generate sets False unless it prints alignments
        model.decoder.need_attn = wanted
        close(model(*batch)[0], training)
        with torch.no_grad():
            close(model(*batch)[0], training)


@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_dropout_is_drawn_in_training_only(encoding: str) -> None:
    model = build(encoding, attention_dropout=0.5)
    batch = collate(sources(), "left"), None, collate(targets())
    assert not torch.allclose(model(*batch)[0], model(*batch)[0], rtol=0, atol=1e-6)
    model.eval()
    assert torch.equal(model(*batch)[0], model(*batch)[0])


def test_retained_dropout_is_found_by_the_name_of_fairseqs_module() -> None:
    """--retain-dropout --retain-dropout-modules MultiheadAttention keeps ours, and only ours."""
    model = build("diet-rel", attention_dropout=0.5, dropout=0.5)
    model.make_generation_fast_(retain_dropout=True, retain_dropout_modules=["MultiheadAttention"])
    modules = attention_modules(model).values()
    assert all(module.dropout_module.apply_during_inference for module in modules)
    assert not model.encoder.layers[0].dropout_module.apply_during_inference
    batch = collate(sources(), "left"), None, collate(targets())
    assert not torch.allclose(model(*batch)[0], model(*batch)[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("encoding", ["diet-rel", "shaw", "rotary"])
def test_retained_dropout_is_drawn_step_by_step(encoding: str) -> None:
    """As fairseq's own attention draws it, from the weights of each step."""
    model = build(encoding, attention_dropout=0.5)
    model.make_generation_fast_(retain_dropout=True, retain_dropout_modules=["MultiheadAttention"])
    model.eval()
    tokens = collate(targets())
    with torch.no_grad():
        source = model.encoder(collate(sources(), "left"), None)
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


@each_encoding
def test_the_encoding_changes_the_output(encoding: str, sharing: str | None) -> None:
    plain, model = build("none"), build(encoding, sharing)
    copy_content_weights(model, plain)
    batch = collate(sources(), "left"), None, collate(targets())
    for mode in (True, False):
        outputs = [m.train(mode)(*batch)[0] for m in (plain, model)]
        assert torch.equal(*outputs) == (encoding == "none")


@each_kind
def test_inference_after_an_update_uses_the_new_weights(encoding: str, sharing: str | None) -> None:
    """Nothing of the tables is kept from the validation before: the next one starts afresh.

    The update writes through ``.data``, as fairseq's Adam does, which torch does not count as one.
    """
    model, fresh = build(encoding, sharing), build(encoding, sharing, seed=2)
    batch = collate(sources(), "left"), None, collate(targets())
    with torch.no_grad():
        before, _ = model.eval()(*batch)
    model.train()(*batch)[0].sin().sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.data.add_(parameter.grad.data)
    fresh.load_state_dict(model.state_dict())
    with torch.no_grad():
        after, _ = model.eval()(*batch)
        assert not torch.allclose(after, before, rtol=0, atol=1e-3)
        assert torch.equal(after, fresh.eval()(*batch)[0])
