"""Factors appended to queries and keys, as over long sentences, equal the table of their product.

Lengths are small here and the limit is lowered; ``diet-mt bench memory`` measures real ones.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import attention
from diet_mt.positions import AttentionShape, build_position, factors
from diet_mt.positions.factors import FactorTerms

from ..toy import (
    KINDS,
    assert_finite_gradients,
    attention_calls,
    attention_positions,
    build,
    close,
    collate,
    sharing_modes,
    sources,
    step_by_step,
    targets,
)

FACTORED = ("diet-abs", "tupe-abs")
CASES = [(encoding, mode) for encoding in FACTORED for mode in sharing_modes(encoding)]


def batch(side: str = "left") -> tuple[Tensor, None, Tensor]:
    return collate(sources(), side), None, collate(targets(), side)


def outcome(model: DietTransformerModel, side: str, alignment: int | None) -> dict[str, Tensor]:
    """Logits, attention by kind and layer, weights of one layer, and all gradients of a pass."""
    model.zero_grad()
    with attention_calls(model) as calls:
        logits, extra = model(*batch(side), alignment_layer=alignment)
    results = {"logits": logits.detach()}
    if alignment is not None:
        results["attn"] = extra["attn"][0].detach()
    results |= {f"{kind} {layer}": call.output.detach() for (kind, layer), call in calls.items()}
    if torch.is_grad_enabled():
        logits.sin().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            results[f"gradient of {name}"] = parameter.grad.clone()
    return results


@pytest.mark.parametrize("mode", ["train", "no_grad"])
@pytest.mark.parametrize(
    ("fused", "side"), [(False, "left"), (True, "right")], ids=["own-left", "fused-right"]
)
@pytest.mark.parametrize(("encoding", "sharing"), CASES)
def test_both_ways_agree(
    encoding: str,
    sharing: str,
    fused: bool,
    mode: str,
    side: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In all three kinds of attention, over a batch with padding."""
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: fused)
    model = build(encoding, sharing).train(mode == "train")
    alignment = None if fused else 2  # weights are written out by our kernel alone
    with torch.set_grad_enabled(mode != "no_grad"):
        table = outcome(model, side, alignment)
        monkeypatch.setattr(factors, "APPEND_FROM", 3)
        for kind in KINDS:
            positions = attention_positions(model, kind)
            assert positions is not None
            parts = positions.for_layers(range(6), range(6))
            assert {type(part) for part in parts} == {FactorTerms}
        appended = outcome(model, side, alignment)
    assert appended.keys() == table.keys()
    assert len(table) >= (41 if mode != "no_grad" else 9)
    for name, expected in table.items():
        torch.testing.assert_close(appended[name], expected, rtol=0, atol=1e-10, msg=name)


@pytest.mark.parametrize("encoding", FACTORED)
def test_a_row_of_padding_alone_harms_no_other(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 3)
    model = build(encoding)
    source, _, previous = batch()
    before, _ = model(source, None, previous)
    source[3], previous[3] = 1, 1
    after, _ = model(source, None, previous)
    others = [0, 1, 2, 4]
    close(after[others], before[others])
    after.square().sum().backward()
    assert_finite_gradients(model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
@pytest.mark.parametrize("encoding", FACTORED)
def test_half_precision_is_close(
    encoding: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The large number in the place of -inf is one that half precision has."""
    model = build(encoding).eval()
    with torch.no_grad():
        expected, _ = model(*batch())
        monkeypatch.setattr(factors, "APPEND_FROM", 3)
        found, _ = model.to(dtype)(*batch())
    # As in tests/models/test_precision.py, with the factors rounded before their product.
    limit = 16 * torch.finfo(dtype).eps * expected.abs().max().item()
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=limit)


def test_what_is_no_product_keeps_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 2)
    for encoding in ("tupe-rel", "diet-rel", "t5", "alibi"):
        positions = build_position(encoding).attention_positions(AttentionShape(2, 3, 4, 9, 9))
        assert positions is not None
        for part in positions.for_layers(range(9), range(9)):
            assert part.factors() is None
            assert part.bias is not None, encoding


@torch.no_grad()
@pytest.mark.usefixtures("either_memory")
@pytest.mark.parametrize("encoding", FACTORED)
def test_decoding_adds_the_product(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(encoding).eval()
    source, previous = collate(sources()), torch.randint(4, 44, (5, 6))
    expected, _ = model(source, None, previous)
    monkeypatch.setattr(factors, "APPEND_FROM", 1)
    close(step_by_step(model, source, previous), expected)
