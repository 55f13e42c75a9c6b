"""A sentence's outputs do not depend on padding or on its batch, and padding costs no memory."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from diet_mt.nn import attention

from ..commands.runner import ROOT
from ..toy import (
    NOT_RANDOMIZED,
    PAD,
    PRE_NORM,
    SOURCE_LENGTHS,
    assert_finite_gradients,
    build,
    close,
    collate,
    each_encoding,
    each_kind,
    real,
    sources,
    targets,
    without_weights,
)

# Sides of source and target, columns of padding beyond the longest sentence, and options.
LAYOUTS: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "left-right": ("left", "right", 0, {}),
    "right-right-wider": ("right", "right", 2, {}),
    "left-left-wider-pre-norm": ("left", "left", 3, PRE_NORM),
    "left-left-randomized": ("left", "left", 2, {"position_randomized": 23}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@each_encoding
def test_alone_equals_together(encoding: str, sharing: str | None, layout: str) -> None:
    source_side, target_side, extra, options = LAYOUTS[layout]
    randomized = "position_randomized" in options
    options = {} if randomized and encoding in NOT_RANDOMIZED else options
    model = build(encoding, sharing, **options).train(not randomized)
    rows, outputs = sources(), targets()
    source = collate(rows, source_side, width=7 + extra)
    previous = collate(outputs, target_side, width=6 + extra)
    logits, more = model(source, None, previous, alignment_layer=2)
    encoded = model.encoder(source, None)["encoder_out"][0].transpose(0, 1)
    together = zip(
        real(encoded, rows),  # right-padded, whatever came in
        real(logits, outputs, target_side),
        real(more["attn"][0], outputs, target_side),
        strict=True,
    )
    for number, (states, words, attn) in enumerate(together):
        one, own = torch.tensor([rows[number]]), torch.tensor([outputs[number]])
        alone, alone_more = model(one, None, own, alignment_layer=2)
        close(words, alone[0])
        close(states, model.encoder(one, None)["encoder_out"][0][:, 0])
        columns = real(attn.T.unsqueeze(0), [rows[number]], source_side)[0].T
        close(columns, alone_more["attn"][0][0])
        # A weight for each source token, none for padding.
        close(attn.sum(-1), torch.ones(len(outputs[number]), dtype=torch.float64))
        assert attn.shape == (len(outputs[number]), 7 + extra)


@each_encoding
def test_a_row_of_padding_alone_harms_no_other(encoding: str, sharing: str | None) -> None:
    """Finite outputs and gradients, and the other rows as before."""
    model = build(encoding, sharing)
    source, previous = collate(sources(), "left"), collate(targets(), "left")
    before, _ = model(source, None, previous, alignment_layer=2)
    others = [0, 1, 2, 4]
    source[3], previous[3] = PAD, PAD
    after, more = model(source, None, previous, alignment_layer=2)
    close(after[others], before[others])
    for values in (after, more["attn"][0], *more["inner_states"]):
        assert torch.isfinite(values).all()
    after.square().sum().backward()
    assert_finite_gradients(model)


@each_encoding
def test_a_gradient_does_not_reach_padding(encoding: str, sharing: str | None) -> None:
    """The output of a real token has no gradient towards the embedding of a padded column; and
    ``token_embeddings`` are aligned with the batch as it came, here with padding on the left.
    """
    model = build(encoding, sharing)
    rows = sources()
    source = collate(rows, "left")
    embedded = model.encoder.embed_tokens(source).detach().requires_grad_()
    states = model.encoder(source, None, token_embeddings=embedded)["encoder_out"][0]
    close(states, model.encoder(source, None)["encoder_out"][0])
    torch.cat(real(states.transpose(0, 1), rows)).sin().sum().backward()
    assert embedded.grad is not None
    assert torch.equal(embedded.grad.any(-1), source.ne(PAD))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("encoding", ["none", "linformer", "concat"])
def test_shapes_of_all_outputs(encoding: str, side: str) -> None:
    rows, model = sources(), build(encoding)
    out = model.encoder(collate(rows, side), None, return_all_hiddens=True)
    assert out["encoder_out"][0].shape == (7, 5, 12)
    assert [states.shape for states in out["encoder_states"]] == [(7, 5, 12)] * 3
    assert torch.equal(out["encoder_states"][-1], out["encoder_out"][0])
    assert out["encoder_embedding"][0].shape == (5, 7, 12)
    assert torch.equal(out["encoder_padding_mask"][0], collate(rows).eq(PAD))
    assert torch.equal(out["key_padding"][0], collate(rows).eq(PAD))
    assert out["src_lengths"][0].tolist() == [[length] for length in SOURCE_LENGTHS]
    columns = [each.shape for each in out["source_columns"]]
    assert columns == ([(5, 7)] if side == "left" else [])
    source, previous = collate(rows, "left"), collate(targets(), side)
    logits, more = model(source, None, previous)
    assert logits.shape == (5, 6, 44)
    assert more["attn"] == [None]
    assert [states.shape for states in more["inner_states"]] == [(6, 5, 16)] * 4
    features, _ = model.extract_features(source, None, previous)
    assert features.shape == (5, 6, 16)
    close(model.decoder.output_layer(features), logits)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("encoding", ["diet-rel", "shaw"])
def test_alignment_of_one_layer_and_some_heads(encoding: str, side: str) -> None:
    model = build(encoding).eval()
    source, previous = collate(sources(), "left"), collate(targets(), side)

    def weights(**options: int) -> Tensor:
        attn: Tensor = model(source, None, previous, **options)[1]["attn"][0]
        return attn

    last, first = weights(alignment_layer=2), weights(alignment_layer=0)
    assert last.shape == (5, 6, 7)
    assert not torch.allclose(last, first)
    assert not torch.allclose(weights(alignment_layer=0, alignment_heads=1), first)
    close(weights(alignment_layer=0, alignment_heads=2), first)


@each_kind
def test_full_context_lets_targets_see_what_follows(encoding: str, sharing: str | None) -> None:
    """``full_context_alignment``: without the causal mask, but never into the padding."""
    model = build(encoding, sharing)
    outputs = targets()
    previous = collate(outputs)
    encoded = model.encoder(collate(sources()), None)

    def run(tokens: Tensor, full: bool) -> Tensor:
        logits: Tensor = model.decoder(tokens, encoded, full_context_alignment=full)[0]
        return logits

    changed = previous.clone()
    changed[1, 5] = 4 if changed[1, 5] != 4 else 5  # row 1 is the longest
    close(run(previous, False)[1, :5], run(changed, False)[1, :5])
    assert not torch.allclose(run(previous, True)[1, :5], run(changed, True)[1, :5])
    wider = run(collate(outputs, width=8), True)
    for one, other in zip(real(run(previous, True), outputs), real(wider, outputs), strict=True):
        close(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@each_kind
@torch.no_grad()
def test_fused_kernels_copy_no_mask(
    encoding: str, sharing: str | None, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch would copy one for each head and sentence, and does not look where a mask begins."""
    masks: list[Tensor] = []
    kernel = F.scaled_dot_product_attention

    def looking(*args: Any, attn_mask: Tensor | None = None, **options: Any) -> Tensor:
        if attn_mask is not None:
            masks.append(attn_mask)
        return kernel(*args, attn_mask=attn_mask, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", looking)
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: True)
    model = build(encoding, sharing, **without_weights(encoding)).eval().to(dtype)
    # Rows of a multiple of 8 keys that are parts of longer lines; lines of a multiple of 8; padded.
    for source, target in (((8,) * 3, (6,) * 3), ((10,) * 3, (8,) * 3), ((10, 7, 4), (8, 8, 2))):
        model(collate(sources(source), "left"), None, collate(targets(target)))
    assert masks
    for mask in masks:
        assert mask.stride(-1) == 1
        assert all(step % 8 == 0 for step in mask.stride()[:-1])
        assert mask.data_ptr() % 16 == 0


@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs"])
def test_a_batch_with_padding_takes_at_most_5_percent_more_memory(encoding: str) -> None:
    script = runpy.run_path(str(ROOT / "results" / "padding_memory" / "measure.py"))
    bytes_of = script["measure"](encoding, {**script["SIZES"], "layers": 2})
    for name, size in bytes_of["unpadded"].items():
        assert bytes_of["padded"][name] <= 1.05 * size, name
