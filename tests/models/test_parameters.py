"""Parameters: how many, where they lie in the checkpoint, and that each of them learns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerModelBase
from torch import nn

from diet_mt.models._options import NestedConfig, nested_config

from ..positions.cases import (
    CASES,
    CLIP,
    E_DEC,
    E_ENC,
    H_DEC,
    H_ENC,
    L_DEC,
    L_ENC,
    N_S,
    N_T,
    in_logits,
)
from ..toy import (
    KINDS,
    PAD,
    SAME_WIDTH,
    SIZES,
    SOURCE_LENGTHS,
    TARGET_LENGTHS,
    ToyTask,
    attention_positions,
    build,
    collate,
    each_encoding,
    every_encoding,
    options,
    position_parameters,
    real,
    sources,
    targets,
)

RANK = 5


def count(parameters: dict[str, nn.Parameter]) -> int:
    return sum(parameter.numel() for parameter in parameters.values())


# Width of the word vectors of both stacks, where it is not that of the stack.
WORD_WIDTHS = {"concat": (11, 14)}
# What moves all logits of a query alike: its gradient is 0 but for rounding.
WITHOUT_GRADIENT = ("k_proj.bias", "encoder_attn_positions.sources.norm.bias")


@pytest.mark.parametrize("mode", ["none", "head-wise", "layer-wise"])
def test_the_rank_counts(mode: str) -> None:
    model = build("diet-abs", mode, position_rank=RANK)
    expected = in_logits(mode, 2 * N_S * RANK, 2 * N_T * RANK, (N_T + N_S) * RANK)
    assert count(position_parameters(model)) == expected


@cache
def stock_shapes() -> dict[str, torch.Size]:
    """Of fairseq's own Transformer with the same options."""
    cfg = nested_config(options("none"), NestedConfig)
    return {
        name: parameter.shape
        for name, parameter in TransformerModelBase.build_model(cfg, ToyTask()).named_parameters()
        if name.split(".")[-1].rsplit("_", 1)[0] not in ("in_proj", "out_proj", "fc1", "fc2")
    }  # stock fairseq 0.12.2 keeps a second copy of each encoder layer


@each_encoding
def test_everything_else_is_fairseqs_transformer(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing)
    theirs = dict(stock_shapes())
    ours = {name: parameter.shape for name, parameter in model.named_parameters()}
    for name in position_parameters(model):
        del ours[name]
    for stack, width in zip(("encoder", "decoder"), WORD_WIDTHS.get(encoding, ()), strict=False):
        theirs[f"{stack}.embed_tokens.weight"] = torch.Size([44, width])
    assert ours == theirs


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
    assert count(position_parameters(model)) == CASES[encoding].numbers(sharing)
    state = model.state_dict()
    places = [tensor.data_ptr() for tensor in state.values()]
    assert len(set(places)) == len(places)
    names = position_parameters(model)
    assert names.keys() <= state.keys()
    assert sum(state[name].numel() for name in names) == CASES[encoding].numbers(sharing)


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


def test_sizes_used_here_are_those_of_the_toy() -> None:
    assert (SIZES["encoder_layers"], SIZES["encoder_attention_heads"]) == (L_ENC, H_ENC)
    assert (SIZES["encoder_embed_dim"], SIZES["decoder_embed_dim"]) == (E_ENC, E_DEC)
    assert (SIZES["decoder_layers"], SIZES["decoder_attention_heads"]) == (L_DEC, H_DEC)
    assert (SIZES["max_source_positions"], SIZES["max_target_positions"]) == (N_S, N_T)
