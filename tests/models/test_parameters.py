"""Parameters: how many, where they are in the checkpoint, and that each of them learns."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from fairseq.models.roberta import RobertaModel
from torch import nn

from .. import toy_sentences
from ..positions.cases import ALL, CLIP, H_ENC
from ..toy import (
    KINDS,
    PAD,
    SAME_WIDTH,
    SOURCE_LENGTHS,
    TARGET_LENGTHS,
    ToyTask,
    attention_positions,
    build,
    collate,
    each_encoding,
    every_encoding,
    position_parameters,
    real,
    sources,
    targets,
)


def count(parameters: dict[str, nn.Parameter]) -> int:
    return sum(parameter.numel() for parameter in parameters.values())


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


def places(kind: str) -> set[tuple[int, int]]:
    """(query, key) positions that occur in the batch and are not masked.

    Without query 0 of the decoder, which sees one key: the softmax of one logit is 1.
    """
    pairs = set()
    for source, target in zip(SOURCE_LENGTHS, TARGET_LENGTHS, strict=True):
        queries = source if kind == "encoder" else target
        keys = target if kind == "decoder" else source
        pairs |= {(i, j) for i in range(queries) for j in range(keys)}
    return {(i, j) for i, j in pairs if kind != "decoder" or j <= i > 0}


Rows = Callable[[int, int, int], set[int]]


def of_query(i: int, j: int, n_s: int) -> set[int]:
    return {i}


def of_key(i: int, j: int, n_s: int) -> set[int]:
    return {j}


# By encoding and table: the rows that a query i and a key j read. All else in the tables of these
# encodings (such as U of TUPE) belongs to no position.
READ: dict[str, dict[str, Rows]] = {
    "diet-rel": {"by_offset": lambda i, j, n_s: {i - j + n_s - 1}},
    "diet-abs": {"query": of_query, "key": of_key},
    "shaw": {"of_keys": lambda i, j, n_s: {min(max(j - i, -CLIP), CLIP) + CLIP}},
    "tupe-abs": {"positions.weight": of_query, "sources.weight": of_key},
    "linformer": {"of_keys": of_key, "of_values": of_key},
    "diet-abs-lin": {"of_keys": of_key, "of_values": of_key, "mixed.shared.query": of_query},
}
# p of TUPE serves queries and keys of self-attention, P_Q and P_K of DIET-ABS-LIN elsewhere
# are those of DIET-ABS.
READ_WITHIN_A_SENTENCE: dict[str, dict[str, Rows]] = {
    "tupe-abs": {"positions.weight": lambda i, j, n_s: {i, j}},
}


def rows_with_gradient(parameter: nn.Parameter) -> list[int]:
    """Places with a gradient in a table (n, E) of all heads or (H|1, places, ...)."""
    assert parameter.grad is not None
    some = parameter.grad.ne(0)
    by_place = some if parameter.grad.size(0) > H_ENC else some.transpose(0, 1).flatten(1)
    return by_place.any(1).nonzero().flatten().tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoding", READ)
def test_gradients_reach_exactly_the_positions_that_occur(encoding: str, kind: str) -> None:
    """No gradient from padding, from the future or from beyond the longest sentence."""
    model = build(encoding)
    logits, _ = model(collate(sources(), "left"), None, collate(targets()))
    torch.cat(real(logits, targets())).sin().sum().backward()
    positions = attention_positions(model, kind)
    if encoding == "linformer" and kind != "encoder":
        assert positions is None
        return
    assert positions is not None
    reads = READ["diet-abs" if encoding == "diet-abs-lin" and kind != "encoder" else encoding]
    if kind != "cross":
        reads = READ_WITHIN_A_SENTENCE.get(encoding, reads)
    checked = set()
    for name, parameter in positions.named_parameters():
        for table, read in reads.items():
            if name.endswith(table):
                n_s = positions.shape.max_keys
                expected = set().union(*(read(i, j, n_s) for i, j in places(kind)))
                assert rows_with_gradient(parameter) == sorted(expected), name
                checked.add(table)
    assert checked == reads.keys()


@every_encoding
def test_the_state_dict_holds_each_table_once(encoding: str, sharing: str | None) -> None:
    """And as many numbers as its paper's formula says."""
    model = build(encoding, sharing)
    assert count(position_parameters(model)) == ALL[encoding].numbers(sharing)
    state = model.state_dict()
    places = [tensor.data_ptr() for tensor in state.values()]
    assert len(set(places)) == len(places)
    names = position_parameters(model)
    assert names.keys() <= state.keys()
    assert sum(state[name].numel() for name in names) == ALL[encoding].numbers(sharing)


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
