"""A sentence's outputs do not depend on padding or on the batch that it travels in."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.errors import UserError

from ..toy import (
    PAD,
    PRE_NORM,
    SIZES,
    SOURCE_LENGTHS,
    UNLIMITED,
    build,
    close,
    collate,
    each_encoding,
    each_kind,
    real,
    sources,
    targets,
)

# Sides of source and target, columns of padding beyond the longest sentence, and options.
LAYOUTS: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "left-right": ("left", "right", 0, {}),
    "right-right-wider": ("right", "right", 2, {}),
    "left-left-wider-pre-norm": ("left", "left", 3, PRE_NORM),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@each_encoding
def test_alone_equals_together(encoding: str, sharing: str | None, layout: str) -> None:
    source_side, target_side, extra, norm = LAYOUTS[layout]
    model = build(encoding, sharing, **norm)
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
def test_a_row_of_padding_alone_harms_nobody(encoding: str, sharing: str | None) -> None:
    """Finite outputs and gradients, and the other rows as they were."""
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
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            assert torch.isfinite(parameter.grad).all(), name


@each_encoding
def test_a_gradient_does_not_reach_padding(encoding: str, sharing: str | None) -> None:
    """What a real token computes has no gradient towards the embedding of a padded column."""
    model = build(encoding, sharing)
    rows = sources()
    source = collate(rows, "left")
    embedded = torch.randn(*source.shape, SIZES["encoder_embed_dim"], dtype=torch.float64)
    embedded.requires_grad_()
    states = model.encoder(source, None, token_embeddings=embedded)["encoder_out"][0]
    torch.cat(real(states.transpose(0, 1), rows)).sin().sum().backward()
    assert embedded.grad is not None
    assert torch.equal(embedded.grad.any(-1), source.ne(PAD))


@pytest.mark.parametrize("encoding", ["learned", "concat", "diet-rel"])
def test_given_token_embeddings_follow_their_tokens(encoding: str) -> None:
    """``token_embeddings`` are aligned with the batch as it came, here with padding on the left."""
    model = build(encoding)
    source = collate(sources(), "left")
    looked_up = model.encoder.embed_tokens(source)
    close(
        model.encoder(source, None, token_embeddings=looked_up)["encoder_out"][0],
        model.encoder(source, None)["encoder_out"][0],
    )


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("encoding", ["none", "linformer", "concat"])
def test_shapes_of_everything_that_the_encoder_returns(encoding: str, side: str) -> None:
    rows = sources()
    out = build(encoding).encoder(collate(rows, side), None, return_all_hiddens=True)
    assert out["encoder_out"][0].shape == (7, 5, 12)
    assert [states.shape for states in out["encoder_states"]] == [(7, 5, 12)] * 3
    assert torch.equal(out["encoder_states"][-1], out["encoder_out"][0])
    assert out["encoder_embedding"][0].shape == (5, 7, 12)
    assert torch.equal(out["encoder_padding_mask"][0], collate(rows).eq(PAD))
    assert torch.equal(out["source_mask"][0], collate(rows).eq(PAD))
    assert out["src_lengths"][0].tolist() == [[length] for length in SOURCE_LENGTHS]
    if side == "left":
        assert out["source_columns"][0].shape == (5, 7)
    else:
        assert out["source_columns"] == []


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("encoding", ["none", "concat"])
def test_shapes_of_everything_that_the_decoder_returns(encoding: str, side: str) -> None:
    model = build(encoding)
    source, previous = collate(sources(), "left"), collate(targets(), side)
    logits, more = model(source, None, previous)
    assert logits.shape == (5, 6, 44)
    assert more["attn"] == [None], "nobody asked for it"
    assert [states.shape for states in more["inner_states"]] == [(6, 5, 16)] * 4
    features, _ = model.extract_features(source, None, previous)
    assert features.shape == (5, 6, 16)
    close(model.decoder.output_layer(features), logits)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("encoding", ["diet-rel", "shaw"])
def test_alignment_asks_one_layer_and_some_heads(encoding: str, side: str) -> None:
    model = build(encoding).eval()
    source, previous = collate(sources(), "left"), collate(targets(), side)

    def weights(**asked: int) -> Tensor:
        attn: Tensor = model(source, None, previous, **asked)[1]["attn"][0]
        return attn

    last, first = weights(alignment_layer=2), weights(alignment_layer=0)
    assert last.shape == (5, 6, 7)
    assert not torch.allclose(last, first)
    one_head = weights(alignment_layer=0, alignment_heads=1)
    assert not torch.allclose(one_head, first)
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


@each_encoding
def test_sentences_up_to_the_longest_position_and_not_beyond(
    encoding: str, sharing: str | None
) -> None:
    """n_S = 11 and n_T = 10."""
    model = build(encoding, sharing)
    assert model.max_positions() == (11, 10)
    for source_length, target_length in ((11, 10), (12, 4), (4, 11)):
        given = torch.full((1, source_length), 5), None, torch.full((1, target_length), 5)
        if encoding in UNLIMITED or (source_length <= 11 and target_length <= 10):
            assert torch.isfinite(model(*given)[0]).all()
        else:
            option = "--max-source-positions or --max-target-positions"
            with pytest.raises(UserError, match=rf"tokens is longer than .* positions .*{option}"):
                model(*given)
