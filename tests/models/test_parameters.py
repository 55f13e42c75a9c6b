"""Parameters: how many, where they lie in the checkpoint, and that each of them learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerModelBase
from torch import nn

from diet_mt.models._options import nested_config
from diet_mt.positions import NAMES

from ..toy import (
    KINDS,
    PAD,
    SAME_WIDTH,
    SIZES,
    SOURCE_LENGTHS,
    TARGET_LENGTHS,
    ToyTask,
    attention_bias,
    both_norms,
    build,
    collate,
    every_encoding,
    options,
    position_parameters,
    real,
    sources,
    targets,
)

L_ENC, H_ENC, D_ENC, E_ENC = 2, 3, 4, 12
L_DEC, H_DEC, D_DEC, E_DEC = 3, 2, 9, 18
N_S, N_T = 11, 10
RANK = 5


def count(parameters: dict[str, nn.Parameter]) -> int:
    return sum(parameter.numel() for parameter in parameters.values())


def tables(layers: int, heads: int, sharing: str | None) -> int:
    """How many (layer, head) pairs have a table of their own."""
    return {"none": layers * heads, "head-wise": layers, "layer-wise": heads}[sharing or ""]


def in_logits(sharing: str | None, encoder: int, decoder: int, cross: int) -> int:
    """Total for so many numbers per table of each kind."""
    of_decoder = tables(L_DEC, H_DEC, sharing)
    return tables(L_ENC, H_ENC, sharing) * encoder + of_decoder * (decoder + cross)


# SPEC: DIET-REL has 2n - 1 offsets (n_T + n_S - 1 in cross-attention), DIET-ABS two factors of n r.
COUNTS: dict[str, Any] = {
    "none": lambda _: 0,
    "sinusoidal": lambda _: 0,
    "learned": lambda _: N_S * E_ENC + N_T * E_DEC,
    "diet-rel": lambda mode: in_logits(mode, 2 * N_S - 1, 2 * N_T - 1, N_T + N_S - 1),
    "diet-abs": lambda mode: in_logits(mode, 2 * N_S * D_ENC, 2 * N_T * D_DEC, (N_T + N_S) * D_DEC),
}


def test_every_encoding_has_a_formula() -> None:
    assert COUNTS.keys() == NAMES.keys()


@every_encoding
def test_parameters_of_positions_follow_the_formula(encoding: str, sharing: str | None) -> None:
    assert count(position_parameters(build(encoding, sharing))) == COUNTS[encoding](sharing)


@pytest.mark.parametrize("mode", ["none", "head-wise", "layer-wise"])
def test_the_rank_counts(mode: str) -> None:
    model = build("diet-abs", mode, position_rank=RANK)
    expected = in_logits(mode, 2 * N_S * RANK, 2 * N_T * RANK, (N_T + N_S) * RANK)
    assert count(position_parameters(model)) == expected


def stock_model(**changes: Any) -> TransformerModelBase:
    """fairseq's own Transformer with the same options."""
    cfg = nested_config(options("none", None, **changes))
    return TransformerModelBase.build_model(cfg, ToyTask())


@every_encoding
def test_everything_else_is_fairseqs_transformer(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing)
    theirs = {
        name: parameter.shape
        for name, parameter in stock_model().named_parameters()
        if name.split(".")[-1].rsplit("_", 1)[0] not in ("in_proj", "out_proj", "fc1", "fc2")
    }  # stock fairseq 0.12.2 keeps a second copy of each encoder layer
    ours = {name: parameter.shape for name, parameter in model.named_parameters()}
    for name in position_parameters(model):
        del ours[name]
    assert ours == theirs


@both_norms
@every_encoding
def test_every_parameter_gets_a_gradient_in_one_step(
    encoding: str, sharing: str | None, norm: dict[str, Any]
) -> None:
    """From the initial values: DIET-ABS must not start where both factors are at rest."""
    model = build(encoding, sharing, tables=None, **norm)
    logits, _ = model(collate(sources(), "left"), None, collate(targets()))
    goal = collate(targets()).roll(-1, 1)
    F.cross_entropy(logits.flatten(0, 1), goal.flatten(), ignore_index=PAD).backward()
    silent = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ]
    # A bias of the keys moves all logits of a query alike: its gradient is 0 but for rounding.
    assert [name for name in silent if not name.endswith("k_proj.bias")] == []


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


# For a table (H|1, places, ...): the indices of the places that a pair (i, j) reads.
READ: dict[str, Callable[[int, int, int], int]] = {
    "by_offset": lambda i, j, n_s: i - j + n_s - 1,
    "query": lambda i, j, n_s: i,
    "key": lambda i, j, n_s: j,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoding", ["diet-abs", "diet-rel"])
def test_gradients_reach_exactly_the_positions_that_occur(encoding: str, kind: str) -> None:
    """No gradient from padding, from the future or from beyond the longest sentence."""
    model = build(encoding)
    logits, _ = model(collate(sources(), "left"), None, collate(targets()))
    torch.cat(real(logits, targets())).sin().sum().backward()
    bias = attention_bias(model, kind)
    assert bias is not None
    for table in bias.tables():
        for name, parameter in table.named_parameters():
            assert parameter.grad is not None
            by_place = parameter.grad.ne(0).transpose(0, 1).flatten(1)
            expected = {READ[name](i, j, bias.shape.max_keys) for i, j in places(kind)}
            assert by_place.any(1).nonzero().flatten().tolist() == sorted(expected)


@every_encoding
def test_one_training_step_moves_every_table(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing, tables=None)
    before = {name: table.detach().clone() for name, table in position_parameters(model).items()}
    batch = collate(sources(), "left"), None, collate(targets())
    model(*batch)[0].square().mean().backward()
    torch.optim.Adam(model.parameters(), lr=0.1).step()
    for name, table in position_parameters(model).items():
        assert not torch.equal(table, before[name]), name


@every_encoding
def test_the_state_dict_holds_each_table_once(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing)
    state = model.state_dict()
    places = [tensor.data_ptr() for tensor in state.values()]
    assert len(set(places)) == len(places)
    names = position_parameters(model)
    assert names.keys() <= state.keys()
    assert sum(state[name].numel() for name in names) == COUNTS[encoding](sharing)


@every_encoding
def test_weights_load_back_strictly(encoding: str, sharing: str | None) -> None:
    saved, loaded = build(encoding, sharing), build(encoding, sharing, seed=2)
    batch = collate(sources(), "left"), None, collate(targets())
    assert not torch.allclose(saved(*batch)[0], loaded(*batch)[0])
    loaded.load_state_dict(saved.state_dict(), strict=True)
    assert torch.equal(saved(*batch)[0], loaded(*batch)[0])


@every_encoding
def test_all_embeddings_shared(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing, share_all_embeddings=True, **SAME_WIDTH)
    weight = model.encoder.embed_tokens.weight
    assert model.decoder.embed_tokens.weight is weight
    assert model.decoder.output_projection.weight is weight
    batch = collate(sources(), "left"), None, collate(targets())
    model(*batch)[0].square().sum().backward()
    other = build(encoding, sharing, seed=2, share_all_embeddings=True, **SAME_WIDTH)
    other.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(other(*batch)[0], model(*batch)[0])
    assert other.decoder.embed_tokens.weight is other.encoder.embed_tokens.weight


def test_sizes_used_here_are_those_of_the_toy() -> None:
    assert (SIZES["encoder_layers"], SIZES["encoder_attention_heads"]) == (L_ENC, H_ENC)
    assert (SIZES["encoder_embed_dim"], SIZES["decoder_embed_dim"]) == (E_ENC, E_DEC)
    assert (SIZES["decoder_layers"], SIZES["decoder_attention_heads"]) == (L_DEC, H_DEC)
    assert (SIZES["max_source_positions"], SIZES["max_target_positions"]) == (N_S, N_T)
