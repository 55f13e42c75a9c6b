"""Positions matter, and only where they should."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from diet_mt.layers.multihead import AttentionCall
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import attention

from ..positions.cases import CASES
from ..toy import (
    EOS,
    SIZES,
    AttentionProbe,
    attention_modules,
    build,
    collate,
    copy_content_weights,
    each_encoding,
    position_parameters,
    sources,
    targets,
)

ROUNDING = 1e-10  # float64; other orders of the same sums


def same(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=0, atol=ROUNDING)


@each_encoding
def test_the_order_of_source_words_matters_unless_there_are_no_positions(
    encoding: str, sharing: str | None
) -> None:
    model = build(encoding, sharing)
    words = [5, 9, 23, 14, 31]
    orders = [words, [23, 5, 31, 14, 9], words[::-1]]
    previous = collate([targets()[0]])
    outputs = [model(torch.tensor([[*order, EOS]]), None, previous)[0] for order in orders]
    for output in outputs[1:]:
        assert same(output, outputs[0]) == (encoding == "none")


@each_encoding
def test_the_position_of_the_query_reaches_cross_attention(
    encoding: str, sharing: str | None
) -> None:
    """The same word at every target position looks at the source in the same way, or does not."""
    model = build(encoding, sharing)
    source = torch.tensor([[5, 9, 23, EOS]])
    _, extra = model(source, None, torch.full((1, 6), 7), alignment_layer=2)
    attn = extra["attn"][0]  # (1, T, S)
    # Without positions even the causal mask does not help: all queries and all keys are equal.
    reached = not same(attn[:, 1:], attn[:, :1].expand(-1, 5, -1))
    assert reached == CASES[encoding].reaches_cross


@each_encoding
def test_the_order_of_target_words_matters_unless_there_are_no_positions(
    encoding: str, sharing: str | None
) -> None:
    """To what comes after them, in one layer: a second one sees what the causal mask has done."""
    model = build(encoding, sharing, decoder_layers=1)
    source = torch.tensor([[5, 9, 23, EOS]])
    one, other = ([EOS, *words, 7] for words in ([5, 9, 23, 14], [23, 5, 14, 9]))
    logits = [model(source, None, torch.tensor([words]))[0][:, -1] for words in (one, other)]
    assert same(*logits) == (encoding == "none")


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
@each_encoding
def test_shifting_all_positions_in_self_attention(
    encoding: str, sharing: str | None, kind: str
) -> None:
    """Three tokens that nobody may look at stand before the sentence, so positions rise by 3."""
    model = build(encoding, sharing)
    shift, length, batch = 3, 6, 2
    for layer in range(SIZES[f"{kind}_layers"]):
        probe = AttentionProbe(model, kind, layer)
        x = torch.randn(shift + length, batch, SIZES[f"{kind}_embed_dim"], dtype=torch.float64)
        mask = torch.zeros(batch, shift + length, dtype=torch.bool)
        alone = probe(x[shift:], x[shift:], mask[:, shift:])
        mask[:, :shift] = True
        assert same(probe(x, x, mask)[shift:], alone) != CASES[encoding].shift


@each_encoding
def test_all_tables_at_zero_equal_no_positions_exactly(
    encoding: str, sharing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit, by the same kernel: what is added is 0, to the logits or the embeddings."""
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: False)
    model, plain = build(encoding, sharing), build("none")
    copy_content_weights(model, plain)
    tables = position_parameters(model)
    for table in tables.values():
        nn.init.zeros_(table)
    batch = collate(sources(), "left"), None, collate(targets())
    with torch.no_grad():
        equal = torch.equal(model(*batch)[0], plain(*batch)[0])
        assert equal == (not CASES[encoding].at_zero)
        for module in attention_modules(plain).values():
            module.scaling *= 2**-0.5
        equal = torch.equal(model(*batch)[0], plain(*batch)[0])
    assert equal == ("sqrt(2 D)" in CASES[encoding].at_zero)


LARGE = 50.0  # beside logits of order 1 nothing else counts


def one_distance(model: DietTransformerModel, kind: str, layer: int, distance: int) -> None:
    """Lets only keys at ``query - distance`` be seen in one layer."""
    bias = model.encoder if kind == "encoder" else model.decoder
    tables = bias.encoder_attn_positions if kind == "cross" else bias.self_attn_positions
    column = distance + tables.shape.max_keys - 1
    with torch.no_grad():
        tables.layers[layer].by_offset[:, column] = LARGE


@pytest.mark.parametrize(("kind", "distance"), [("encoder", 2), ("encoder", -1), ("cross", -2)])
def test_diet_rel_looks_where_its_distance_points(kind: str, distance: int) -> None:
    """R[i - j] counts from the query back: a large R[2] looks two tokens back."""
    model = build("diet-rel", "none", tables=0.0)
    one_distance(model, kind, 1, distance)
    weights: list[Tensor] = []
    module = attention_modules(model)[kind, 1]

    def ask(_: nn.Module, given: tuple[Tensor, Tensor | None, AttentionCall]) -> object:
        query, source, call = given
        return query, source, replace(call, need_weights=True)

    module.register_forward_pre_hook(ask)
    module.register_forward_hook(lambda *result: weights.append(result[2][1]))
    model(torch.tensor([[5, 9, 23, 14, 31, EOS]]), None, torch.tensor([[EOS, 6, 7, 8]]))
    by_head = weights[0][0]  # (H, T, S)
    for i in range(by_head.size(1)):
        if 0 <= i - distance < 6:
            assert by_head[:, i].argmax(-1).unique().tolist() == [i - distance]
            assert by_head[:, i].max(-1).values.min() > 0.99
