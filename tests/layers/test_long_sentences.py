"""Factors appended to queries and keys, as over long sentences, equal the table of their product.

Lengths are small here and the limit is lowered; ``cli/long_sequences.py`` measures real ones.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from diet_mt import attention
from diet_mt.layers.terms import BLOCK
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import AttentionShape, Term, build_position, factors
from diet_mt.positions.factors import FactorTerm

from ..toy import (
    KINDS,
    attention_calls,
    attention_positions,
    build,
    close,
    collate,
    sharing_modes,
    sources,
    targets,
)

FACTORED = ("diet-abs", "tupe-abs")
CASES = [(encoding, mode) for encoding in FACTORED for mode in sharing_modes(encoding)]


def batch(side: str = "left") -> tuple[Tensor, None, Tensor]:
    return collate(sources(), side), None, collate(targets(), side)


def outcome(model: DietTransformerModel, side: str) -> dict[str, Tensor]:
    """Logits, attention by kind and layer, and all gradients of a pass."""
    model.zero_grad()
    with attention_calls(model) as calls:
        logits, extra = model(*batch(side))
    found = {"logits": logits.detach(), "attn": extra["attn"][0].detach()}
    found |= {f"{kind} {layer}": call.output.detach() for (kind, layer), call in calls.items()}
    if torch.is_grad_enabled():
        logits.sin().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            found[f"gradient of {name}"] = parameter.grad.clone()
    return found


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize("fused", [False, True], ids=["own", "fused"])
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
    for layer in model.decoder.layers:
        layer.need_attn = not fused  # weights are written out by our kernel alone
    with torch.set_grad_enabled(mode != "no_grad"):
        table = outcome(model, side)
        monkeypatch.setattr(factors, "APPEND_FROM", 3)
        for kind in KINDS:
            positions = attention_positions(model, kind)
            assert positions is not None
            assert positions.terms(0, 6, 6).kind is FactorTerm
        appended = outcome(model, side)
    assert appended.keys() == table.keys()
    assert len(table) > (40 if mode != "no_grad" else 9)
    for name, expected in table.items():
        torch.testing.assert_close(appended[name], expected, rtol=0, atol=1e-10, msg=name)


@pytest.mark.parametrize("encoding", FACTORED)
def test_a_row_of_padding_alone_harms_nobody(
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
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all(), name


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


@pytest.mark.parametrize("heads", [1, 3])
def test_the_scores_are_the_same_sums(heads: int) -> None:
    """q' k' = scale q k + F_Q F_K + mask, in columns up to a multiple of eight."""
    q, k = torch.randn(2, 3, 5, 4).double(), torch.randn(2, 3, 7, 4).double()
    of_query, of_key = torch.randn(heads, 5, 6).double(), torch.randn(heads, 7, 6).double()
    closed = torch.zeros(2, 1, 1, 7).double()
    closed[1, ..., 4:] = -math.inf
    term = FactorTerm(closed, query_len=5, query_factor=of_query, key_factor=of_key)
    wide_q, wide_k, scale = term.widened(q, k, 0.3)
    assert term.mask() is None
    assert wide_q.shape == (2, 3, 5, 16)
    assert wide_k.shape == (2, 3, 7, 16)
    found = scale * wide_q @ wide_k.transpose(-1, -2)
    expected = 0.3 * q @ k.transpose(-1, -2) + of_query @ of_key.transpose(-1, -2)
    close(found[0], expected[0])
    close(found[1, ..., :4], expected[1, ..., :4])
    assert (found[1, ..., 4:] < -1e30).all()


@pytest.mark.parametrize(
    ("queries", "keys", "appended"),
    [(8, 8, True), (9, 30, True), (30, 9, True), (7, 30, False), (30, 7, False), (1, 30, False)],
)
@pytest.mark.parametrize("encoding", FACTORED)
def test_the_way_is_chosen_by_size(
    encoding: str, queries: int, keys: int, appended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 8)
    shape = AttentionShape(2, 3, 4, 32, 32)
    positions = build_position(encoding).attention_positions(shape)
    assert positions is not None
    terms = positions.terms(0, queries, keys)
    assert (terms.kind is FactorTerm) == appended
    assert (terms.kind is Term) == (not appended)
    assert (terms.bias is None) == appended
    if appended:
        assert terms.tensors["query_factor"].shape[-2] == queries
        assert terms.tensors["key_factor"].shape[-2] == keys


def test_what_is_no_product_keeps_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 2)
    for encoding in ("tupe-rel", "diet-rel", "t5", "alibi"):
        positions = build_position(encoding).attention_positions(AttentionShape(2, 3, 4, 9, 9))
        assert positions is not None
        assert positions.terms(0, 9, 9).bias is not None, encoding


def test_decoding_never_appends() -> None:
    """Its blocks are slices of a table: ``Terms.step`` knows nothing of keys in factors."""
    assert BLOCK < factors.APPEND_FROM
