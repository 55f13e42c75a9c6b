"""Without dropout, training, validation and inference compute the same: the term is in all of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt import attention

from ..toy import (
    attention_calls,
    attention_modules,
    both_norms,
    build,
    collate,
    copy_content_weights,
    every_encoding,
    sources,
    targets,
)

# float64; torch's fused kernel takes the softmax in pieces.
ROUNDING = 1e-10


def close(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("kernel", ["own", "fused", "chosen"])
@both_norms
@every_encoding
def test_train_equals_eval(
    encoding: str,
    sharing: str | None,
    norm: dict[str, Any],
    kernel: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With gradients and without, whichever kernel serves at inference."""
    model = build(encoding, sharing, **norm).train()
    batch = collate(sources(), "left"), None, collate(targets())
    training, _ = model(*batch)
    if kernel != "chosen":
        monkeypatch.setattr(attention, "_fused_pays", lambda *_: kernel == "fused")
    model.eval()
    for wanted in (False, True):
        # Weights asked for (alignment), then not: with need_attn False as fairseq-generate sets it.
        model.make_generation_fast_(need_attn=wanted)
        close(model(*batch)[0], training)
        with torch.no_grad():
            close(model(*batch)[0], training)


@every_encoding
def test_dropout_is_drawn_in_training_only(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing, attention_dropout=0.5)
    batch = collate(sources(), "left"), None, collate(targets())
    assert not torch.allclose(model(*batch)[0], model(*batch)[0], rtol=0, atol=1e-6)
    model.eval()
    assert torch.equal(model(*batch)[0], model(*batch)[0])


def test_retained_dropout_is_found_by_the_name_of_fairseqs_module() -> None:
    """--retain-dropout --retain-dropout-modules MultiheadAttention keeps ours, and only ours."""
    model = build("diet-rel", attention_dropout=0.5, dropout=0.5)
    model.prepare_for_inference_(_retain("MultiheadAttention"))
    modules = attention_modules(model).values()
    assert all(module.dropout_module.apply_during_inference for module in modules)
    assert not model.encoder.layers[0].dropout_module.apply_during_inference
    batch = collate(sources(), "left"), None, collate(targets())
    assert not torch.allclose(model(*batch)[0], model(*batch)[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_retained_dropout_of_layers_and_stacks(side: str) -> None:
    model = build("diet-rel", dropout=0.5)
    own = f"Transformer{side.capitalize()}"
    model.prepare_for_inference_(_retain(own, f"{own}Layer"))
    for other in ("encoder", "decoder"):
        stack = getattr(model, other)
        for module in (stack, stack.layers[0]):
            assert module.dropout_module.apply_during_inference == (other == side)


def _retain(*names: str) -> Any:
    from omegaconf import OmegaConf

    generation = {"retain_dropout": True, "retain_dropout_modules": list(names)}
    return OmegaConf.create(
        {"generation": generation, "common": {"fp16": False}, "common_eval": {"path": ""}}
        | {"generation": {**generation, "print_alignment": None}}
    )


@pytest.mark.parametrize("mode", ["train", "eval"])
@every_encoding
def test_every_attention_module_is_called(encoding: str, sharing: str | None, mode: str) -> None:
    """A layer that takes a way around attention would leave the term out, as stock fairseq's does."""
    model = build(encoding, sharing)
    model.load_state_dict(model.state_dict())  # stock fairseq's fused layer waits for this
    getattr(model, mode)()
    with torch.no_grad(), attention_calls(model) as calls:
        model(collate(sources(), "left"), None, collate(targets()))
    assert calls.keys() == attention_modules(model).keys()


@pytest.mark.parametrize("mode", ["train", "eval"])
@every_encoding
def test_the_encoding_changes_the_output(encoding: str, sharing: str | None, mode: str) -> None:
    plain, model = build("none"), build(encoding, sharing)
    copy_content_weights(plain, model)
    batch = collate(sources(), "left"), None, collate(targets())
    outputs = [getattr(m, mode)()(*batch)[0] for m in (plain, model)]
    assert torch.equal(*outputs) == (encoding == "none")
