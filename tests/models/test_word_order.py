"""Positions matter, only where they should, and only where they are placed."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import attention
from diet_mt.positions import KINDS

from ..decoding.test_parity import assert_parity
from ..positions.cases import ALL
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
from .test_search import talkative

ROUNDING = 1e-10  # float64; other orders of the same sums


def same(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=0, atol=ROUNDING)


@each_encoding
def test_the_order_of_words_matters_unless_there_are_no_positions(
    encoding: str, sharing: str | None
) -> None:
    """Of source words to all of the output; of target words to the output behind them, in one
    layer: a second one has what the causal mask has done.
    """
    model = build(encoding, sharing, decoder_layers=1)
    words, order = [5, 9, 23, 14, 31], [23, 5, 31, 14, 9]
    previous = collate([targets()[0]])
    one, other = (model(torch.tensor([[*row, EOS]]), None, previous)[0] for row in (words, order))
    assert same(one, other) == (encoding == "none")
    source = torch.tensor([[5, 9, 23, EOS]])
    one, other = (
        model(source, None, torch.tensor([[EOS, *row, 7]]))[0][:, -1] for row in (words, order)
    )
    assert same(one, other) == (encoding == "none")


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
@each_encoding
def test_shifting_all_positions_in_self_attention(
    encoding: str, sharing: str | None, kind: str
) -> None:
    """Three masked tokens stand in front of the sentence, so positions rise by 3."""
    model = build(encoding, sharing)
    shift, length, batch = 3, 6, 2
    for layer in range(SIZES[f"{kind}_layers"]):
        probe = AttentionProbe(model, kind, layer)
        x = torch.randn(shift + length, batch, SIZES[f"{kind}_embed_dim"], dtype=torch.float64)
        mask = torch.zeros(batch, shift + length, dtype=torch.bool)
        alone = probe(x[shift:], x[shift:], mask[:, shift:])
        mask[:, :shift] = True
        assert same(probe(x, x, mask)[shift:], alone) != ALL[encoding].shift


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
        assert equal == (not ALL[encoding].at_zero)
        for module in attention_modules(plain).values():
            module.scaling *= 2**-0.5
        equal = torch.equal(model(*batch)[0], plain(*batch)[0])
    assert equal == ("sqrt(2 D)" in ALL[encoding].at_zero)


# Part of a parameter's name -> kind of attention.
PLACES = {
    "encoder.self_attn_positions": "encoder",
    "decoder.self_attn_positions": "decoder",
    "decoder.encoder_attn_positions": "cross",
}


def logits(model: DietTransformerModel) -> Tensor:
    model.eval()
    source, target = collate(sources()), collate(targets())
    out: Tensor = model(source, source.ne(1).sum(1), target)[0]
    return out


def place_of(name: str) -> str:
    return next((kind for start, kind in PLACES.items() if name.startswith(start)), "input")


@pytest.mark.parametrize(
    "places", ["encoder", "decoder", "cross", "encoder,decoder", "cross,encoder"]
)
@pytest.mark.parametrize("encoding", ["diet-abs", "shaw"])
def test_elsewhere_it_is_as_if_the_tables_were_0(encoding: str, places: str) -> None:
    whole, some = build(encoding), build(encoding, position_in=places)
    copy_content_weights(whole, some)
    full, own = position_parameters(whole), position_parameters(some)
    assert {place_of(name) for name in own} == set(places.split(","))
    with torch.no_grad():
        for name, table in full.items():
            if name in own:
                own[name].copy_(table)
    different = logits(some)
    assert not torch.allclose(different, logits(whole), atol=1e-3)
    for name in full.keys() - own.keys():
        nn.init.zeros_(full[name])
    torch.testing.assert_close(different, logits(whole), rtol=0, atol=1e-12)


def test_tupe_scales_content_only_where_it_acts() -> None:
    model = build("tupe-abs", position_in="decoder")
    plain = {"encoder": 4**-0.5, "decoder": 8**-0.5, "cross": 8**-0.5}  # head sizes
    actual = {
        "encoder": model.encoder.layers[0].self_attn.scaling,
        "decoder": model.decoder.layers[0].self_attn.scaling,
        "cross": model.decoder.layers[0].encoder_attn.scaling,
    }
    assert actual == pytest.approx({**plain, "decoder": plain["decoder"] / math.sqrt(2)})


@pytest.mark.parametrize("at_input", ["sinusoidal", "learned", "concat"])
def test_the_input_is_that_of_the_other_encoding(at_input: str) -> None:
    both, alone = build("diet-rel", position_input=at_input), build(at_input)
    copy_content_weights(alone, both)
    theirs, ours = position_parameters(alone), position_parameters(both)
    with torch.no_grad():
        for name, table in ours.items():
            table.copy_(theirs[name]) if name in theirs else nn.init.zeros_(table)
    torch.testing.assert_close(logits(both), logits(alone), rtol=0, atol=1e-12)
    assert {place_of(name) for name in ours} >= set(KINDS)


def test_nothing_at_the_input_of_linformer() -> None:
    assert build("linformer", position_input="none").encoder.embed_positions is None
    assert build("linformer").encoder.embed_positions is not None


@pytest.mark.parametrize(
    ("encoding", "options"),
    [
        ("tupe-rel", {"position_in": "encoder", "position_input": "sinusoidal"}),
        ("diet-abs", {"position_in": "cross", "position_input": "learned"}),
        ("shaw", {"position_in": "encoder,decoder", "position_values": True}),
        ("rotary", {"position_in": "decoder"}),
        ("pope", {"position_layers": "::2"}),
        ("tupe-abs", {"position_layers": "1:"}),
    ],
)
def test_both_searches_agree(encoding: str, options: dict[str, str]) -> None:
    assert_parity(talkative(encoding, None, **options))


def test_what_only_the_input_has_is_an_option_of_the_input() -> None:
    model = build("diet-rel", position_input="concat", position_rank=3)
    assert model.encoder.embed_positions.weight.shape[1] == 3
    assert model.signature == "diet-rel sharing=none input=concat rank=3 scale=head"
    # Where both have it, it is that of the encoding.
    model = build("diet-abs", position_input="concat", position_rank=3)
    assert model.encoder.embed_positions.weight.shape[1] != 3
    assert model.signature == "diet-abs sharing=layer-wise rank=3 input=concat scale=head"
