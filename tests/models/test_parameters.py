"""Parameters: how many, where they are in the checkpoint, and that each of them learns."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from fairseq.models.roberta import RobertaModel

from .. import toy_sentences
from ..positions.cases import ALL
from ..toy import (
    PAD,
    SAME_WIDTH,
    ToyTask,
    build,
    collate,
    each_encoding,
    every_encoding,
    position_parameters,
    sources,
    targets,
)

# What moves all logits of a query alike: its gradient is 0 but for rounding.
WITHOUT_GRADIENT = ("k_proj.bias", "encoder_attn_positions.sources.norm.bias")


@every_encoding
def test_every_parameter_gets_a_gradient_in_one_step(encoding: str, sharing: str | None) -> None:
    """From the initial values: DIET-ABS must not start where both factors are at rest."""
    model = build(encoding, sharing, tables=None)
    logits, _ = model(collate(sources(), "left"), None, collate(targets()))
    goal = collate(targets()).roll(-1, 1)
    F.cross_entropy(logits.flatten(0, 1), goal.flatten(), ignore_index=PAD).backward()
    silent = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ]
    assert [name for name in silent if not name.endswith(WITHOUT_GRADIENT)] == []


@every_encoding
def test_the_state_dict_holds_each_table_once(encoding: str, sharing: str | None) -> None:
    """And as many numbers as its paper's formula says."""
    model = build(encoding, sharing)
    tables, state = position_parameters(model), model.state_dict()
    assert len({tensor.data_ptr() for tensor in state.values()}) == len(state)
    assert sum(state[name].numel() for name in tables) == ALL[encoding].numbers(sharing)


@each_encoding
def test_weights_load_back_strictly(encoding: str, sharing: str | None) -> None:
    saved, loaded = build(encoding, sharing), build(encoding, sharing, seed=2)
    batch = collate(sources(), "left"), None, collate(targets())
    assert not torch.allclose(saved(*batch)[0], loaded(*batch)[0])
    loaded.load_state_dict(saved.state_dict(), strict=True)
    assert torch.equal(saved(*batch)[0], loaded(*batch)[0])


@pytest.mark.parametrize("encoding", ["diet-rel", "concat"])
def test_all_embeddings_shared(encoding: str) -> None:
    model = build(encoding, share_all_embeddings=True, **SAME_WIDTH)
    weight = model.encoder.embed_tokens.weight
    assert model.decoder.embed_tokens.weight is weight
    assert model.decoder.output_projection.weight is weight
    batch = collate(sources(), "left"), None, collate(targets())
    model(*batch)[0].square().sum().backward()
    other = build(encoding, seed=2, share_all_embeddings=True, **SAME_WIDTH)
    other.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(other(*batch)[0], model(*batch)[0])
    assert other.decoder.embed_tokens.weight is other.encoder.embed_tokens.weight


@toy_sentences.each_sentence_encoder
def test_everything_else_is_fairseqs_roberta(
    encoding: str, sharing: str | None, segments: str
) -> None:
    """The same names and shapes as in fairseq's own model with the same options."""
    model = toy_sentences.build(encoding, sharing, segments)
    given = toy_sentences.options("none", None, "none", max_positions=11)
    stock = RobertaModel.build_model(given, ToyTask())
    fused = ("in_proj", "out_proj", "fc1", "fc2")  # a second copy in stock fairseq 0.12.2
    theirs = {
        name: parameter.shape
        for name, parameter in stock.named_parameters()
        if name.split(".")[-1].rsplit("_", 1)[0] not in fused and "embed_positions" not in name
    }
    ours = {name: parameter.shape for name, parameter in model.named_parameters()}
    for name in position_parameters(model) | toy_sentences.segment_parameters(model):
        del ours[name]
    if encoding == "concat":  # words are narrower by an eighth, and so is what predicts them
        assert ours.keys() == theirs.keys()
        narrow = {name for name in ours if ours[name] != theirs[name]}
        assert all(name.endswith("embed_tokens.weight") or ".lm_head." in name for name in narrow)
    else:
        assert ours == theirs


@each_encoding
def test_words_are_drawn_as_berts(encoding: str, sharing: str | None) -> None:
    """Normal with 0.02, as learned positions and segments at the input are; linear layers, too."""
    wide = {"encoder_embed_dim": 96, "encoder_attention_heads": 3, "max_source_positions": 64}
    model = toy_sentences.build(encoding, sharing, "input", tables=None, **wide)
    stack = model.encoder.sentence_encoder
    # Thousands of draws each: one deviation of the estimate is about 1 %.
    drawn = [stack.embed_tokens.weight, stack.layers[0].fc1.weight, stack.segment_input.weight]
    drawn += [] if stack.embed_positions is None else list(stack.embed_positions.parameters())
    for parameter in drawn:
        assert parameter.std().item() == pytest.approx(0.02, rel=0.1)
