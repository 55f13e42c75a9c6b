"""Factors appended to queries and keys, as over long sentences, equal the table of their product.

Lengths are small here and the limit is lowered; ``diet-mt bench memory`` measures real ones.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import attention
from diet_mt.positions import factors
from diet_mt.positions.factors import FactorTerms

from ..toy import (
    KINDS,
    attention_calls,
    attention_positions,
    build,
    close,
    collate,
    gradients,
    sharing_modes,
    sources,
    step_by_step,
    targets,
)

FACTORED = ("diet-abs", "tupe-abs")
CASES = [(encoding, mode) for encoding in FACTORED for mode in sharing_modes(encoding)]


def outcome(model: DietTransformerModel, side: str, alignment: int | None) -> dict[str, Tensor]:
    """Attention by kind and layer, weights of one layer, logits and all gradients of a pass."""
    batch = collate(sources(), side), None, collate(targets(), side)
    with attention_calls(model) as calls, torch.no_grad():
        logits, extra = model(*batch, alignment_layer=alignment)
    results = {"logits": logits} | {f"{place}": call.output for place, call in calls.items()}
    if alignment is not None:
        results["attn"] = extra["attn"][0]
    return results | gradients(model, *batch)


@pytest.mark.parametrize(
    ("fused", "side"), [(False, "left"), (True, "right")], ids=["own-left", "fused-right"]
)
@pytest.mark.parametrize(("encoding", "sharing"), CASES)
def test_both_ways_agree(
    encoding: str, sharing: str, fused: bool, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all three kinds of attention, over a batch with padding."""
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: fused)
    model = build(encoding, sharing)
    alignment = None if fused else 2  # weights are written out by our kernel alone
    table = outcome(model, side, alignment)
    monkeypatch.setattr(factors, "APPEND_FROM", 3)
    for kind in KINDS:
        positions = attention_positions(model, kind)
        assert positions is not None
        assert {type(part) for part in positions.for_layers(range(6), range(6))} == {FactorTerms}
    appended = outcome(model, side, alignment)
    assert appended.keys() == table.keys() > dict(model.named_parameters()).keys()
    for name, expected in table.items():
        torch.testing.assert_close(appended[name], expected, rtol=0, atol=1e-10, msg=name)


@torch.no_grad()
@pytest.mark.usefixtures("either_memory")
@pytest.mark.parametrize("encoding", FACTORED)
def test_decoding_adds_the_product(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(encoding).eval()
    source, previous = collate(sources()), torch.randint(4, 44, (5, 6))
    expected, _ = model(source, None, previous)
    monkeypatch.setattr(factors, "APPEND_FROM", 1)
    close(step_by_step(model, source, previous), expected)
