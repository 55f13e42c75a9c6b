"""The encoder with segments: padding, kernels, precision, and where gradients go."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from diet_mt.system.errors import UserError

from ..toy import (
    KINDS_OF_ENCODING,
    PAD,
    PRE_NORM,
    assert_finite_gradients,
    attention_calls,
    close,
    gradients,
    position_parameters,
    real,
)
from ..toy_sentences import (
    MIXED,
    SEGMENTS,
    batch,
    build,
    each_kind,
    each_sentence_encoder,
    rows,
    segment_parameters,
    segments_of_rows,
)


def features(model: nn.Module, given: dict[str, Tensor]) -> Tensor:
    out: Tensor = model(**given, features_only=True)[0]
    return out


@each_sentence_encoder
def test_alone_equals_together(encoding: str, sharing: str | None, segments: str) -> None:
    """With any other sentences in the batch, padding on either side, of any width."""
    for side, extra, norm in (("left", 0, {}), ("right", 2, {}), ("left", 4, PRE_NORM)):
        model = build(encoding, sharing, segments, **norm)
        together = real(features(model, batch(side, 7 + extra)), rows(), side)
        for actual, row, own in zip(together, rows(), segments_of_rows(), strict=True):
            alone = {"src_tokens": torch.tensor([row]), "segment_ids": torch.tensor([own])}
            close(actual, features(model, alone)[0])


@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_words_and_states_are_aligned_with_the_batch_as_it_came(encoding: str) -> None:
    """The words of some tokens only, which masked_lm asks for, and ``inner_states``, which the hub
    interface reads: (S, B, E) each.
    """
    model = build(encoding)
    given = batch("left")
    masked = torch.rand(given["src_tokens"].shape).lt(0.4) & given["src_tokens"].ne(PAD)
    assert masked.any()
    full, _ = model(**given)
    some, _ = model(**given, masked_tokens=masked)
    assert full.shape == (5, 7, 44)
    close(some, full[masked])
    out, extra = model(**batch("left"), features_only=True, return_all_hiddens=True)
    states = extra["inner_states"]
    assert [tuple(state.shape) for state in states] == [(7, 5, 12)] * 3
    close(states[-1].transpose(0, 1), out)
    assert model(**batch("left"), features_only=True)[1]["inner_states"] is None


@pytest.mark.parametrize("encoding", MIXED)
@pytest.mark.parametrize("segments", ["none", "input"])
def test_what_stands_in_padding_never_leaks_into_mixed_keys(encoding: str, segments: str) -> None:
    """Another vector and another segment at padding, more of it, none of it: bit for bit, or where
    the sums have other lengths, up to rounding.
    """
    model = build(encoding, None, segments)
    given = batch()
    before = features(model, given)
    padding = given["src_tokens"].eq(PAD)
    assert padding.any()
    with torch.no_grad():
        model.encoder.sentence_encoder.embed_tokens.weight[PAD] += 100.0
    moved = given["segment_ids"].clone()
    moved[padding] = (moved[padding] + 1) % SEGMENTS
    after = features(model, {**given, "segment_ids": moved})
    assert torch.equal(after[~padding], before[~padding])
    for width in (8, 11):
        wider = features(model, batch(width=width))
        close(wider[:, :7][~padding], before[~padding])
    # E and F have a column for every position: those behind a sentence get no gradient.
    row = torch.tensor([[*rows()[1], *[PAD] * 8]])  # 3 tokens of 11
    features(model, {"src_tokens": row})[:, :3].sin().sum().backward()
    tables = model.encoder.sentence_encoder.self_attn_positions.named_parameters()
    projections = [table for name, table in tables if name.endswith(("of_keys", "of_values"))]
    for table in projections:
        assert table.grad is not None
        assert table.grad[:, :3].any()
        assert not table.grad[:, 3:].any()
    assert projections


@each_sentence_encoder
def test_a_row_of_padding_alone_harms_no_other(
    encoding: str, sharing: str | None, segments: str
) -> None:
    model = build(encoding, sharing, segments)
    given = batch("left")
    before = features(model, given)
    given["src_tokens"][3] = PAD
    after = features(model, given)
    close(after[[0, 1, 2, 4]], before[[0, 1, 2, 4]])
    assert torch.isfinite(after).all()
    after.square().sum().backward()
    assert_finite_gradients(model)


@each_sentence_encoder
def test_segments_change_the_output_exactly_where_there_are_some(
    encoding: str, sharing: str | None, segments: str
) -> None:
    model = build(encoding, sharing, segments)
    given = batch()
    turned = {**given, "segment_ids": (given["segment_ids"] + 1) % SEGMENTS}
    without = {"src_tokens": given["src_tokens"]}
    zeros = {**given, "segment_ids": torch.zeros_like(given["segment_ids"])}
    one, other = features(model, given), features(model, turned)
    assert torch.allclose(one, other) == (segments == "none")
    assert torch.equal(features(model, without), features(model, zeros)), "one segment"


@pytest.mark.parametrize("segments", ["none", "input", "per-head"])
def test_wrong_segments_are_refused(segments: str) -> None:
    """Segments that the model does not have, of any integer type, or of another shape."""
    model, given = build("diet-rel", None, segments), batch()
    small = {**given, "segment_ids": given["segment_ids"].remainder(2).bool()}
    assert torch.equal(
        features(model, small),
        features(model, {**small, "segment_ids": small["segment_ids"].long()}),
    )
    for wrong in (-1, SEGMENTS, 99) if segments != "none" else ():
        given = batch()
        given["segment_ids"][1, 2] = wrong
        with pytest.raises(UserError, match=rf"{wrong} .*0 to 5.*--num-segments"):
            model(**given)
    with pytest.raises(ValueError, match=r"\(5, 7\).*\(5, 6\)"):
        model(**{**given, "segment_ids": given["segment_ids"][:, 1:]})


@each_sentence_encoder
def test_gradients_reach_every_table(encoding: str, sharing: str | None, segments: str) -> None:
    """From the initial values, and from every entry of a table of segments."""
    model = build(encoding, sharing, segments, tables=None)
    actual = gradients(model, **batch("left"))
    assert actual.keys() == dict(model.named_parameters()).keys()
    for name in position_parameters(model):
        assert actual[name].any(), name
    for name in segment_parameters(model):
        assert actual[name].ne(0).all(), name


def test_a_layer_that_is_not_dropped_uses_its_own_segments() -> None:
    """--encoder-layerdrop: tables belong to layers by number, not by place in what is left."""
    seen = set()
    for seed in range(12):
        model = build("diet-rel", None, "per-head", encoder_layerdrop=0.5)
        stack = model.encoder.sentence_encoder
        torch.manual_seed(seed)
        with attention_calls(model) as calls:
            expected = features(model, batch())
        left = [number for _, number in sorted(calls)]
        for part in (stack, stack.segment_positions, stack.self_attn_positions):
            remaining = list(part.layers.children())
            # Where no layer is left one table stays, read by nobody.
            chosen = left or [0] if part is not stack else left
            part.layers = nn.ModuleList(remaining[number] for number in chosen)
        close(features(model, batch()), expected)
        seen.add(tuple(left))
    assert (1,) in seen


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@each_kind
def test_a_half_precision_model_is_close(
    encoding: str, sharing: str | None, segments: str, dtype: torch.dtype
) -> None:
    """``--bf16``, ``--fp16``: finite, close, and with gradients for all tables."""
    model = build(encoding, sharing, segments)
    given = batch("left")
    expected = features(model, given).detach()
    # Two layers, each of which rounds what it passes on a few times, by half an eps; layer norms
    # keep all values near 1.
    limit = 8 * torch.finfo(dtype).eps * expected.abs().max().item()
    model.to(dtype)
    actual = features(model, given)
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.double(), expected, rtol=0, atol=limit)
    actual.float().sin().sum().backward()
    assert_finite_gradients(model, *position_parameters(model), *segment_parameters(model))


@pytest.mark.parametrize("segments", ["input", "per-head"])
def test_autocast_leaves_what_segments_say_in_float32(segments: str) -> None:
    """--amp: rounded once, where the kernel reads them."""
    model = build("diet-rel", None, segments).float()
    stack = model.encoder.sentence_encoder
    ids = batch()["segment_ids"]
    with torch.autocast("cpu", torch.bfloat16):
        if segments == "input":
            assert torch.equal(stack.segment_input(ids), stack.segment_input.weight[ids])
        else:
            pairs = stack.segment_positions(ids)
            assert {factor.dtype for pair in pairs for factor in pair} == {torch.float32}
        loss = features(model, batch()).float().sin().sum()
    loss.backward()
    assert_finite_gradients(model, *segment_parameters(model))


@pytest.mark.parametrize("segments", ["none", "per-head"])
def test_tables_that_start_at_zero_are_the_baseline_right_after_construction(segments: str) -> None:
    """Nothing, neither fairseq's encoder nor its model, draws them anew."""
    plain = build("none", tables=None)
    model = build("diet-rel", None, segments, tables=None)
    tables = position_parameters(model) | segment_parameters(model)
    assert tables
    assert not any(table.any() for table in tables.values())
    for name in dict(model.named_parameters()).keys() - tables.keys():
        model.get_parameter(name).data = plain.get_parameter(name).data
    close(features(model, batch()), features(plain, {"src_tokens": batch()["src_tokens"]}))
