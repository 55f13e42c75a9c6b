"""Where positions act: a choice of attention kinds, and of what is added at the input."""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.errors import UserError
from diet_mt.models._roberta_options import plain_options, sentence_config
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import KINDS

from ..decoding.test_parity import assert_parity
from ..toy import build, collate, copy_content_weights, position_parameters, sources, targets
from .test_search import talkative

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
    found = {
        "encoder": model.encoder.layers[0].self_attn.scaling,
        "decoder": model.decoder.layers[0].self_attn.scaling,
        "cross": model.decoder.layers[0].encoder_attn.scaling,
    }
    assert found == pytest.approx({**plain, "decoder": plain["decoder"] / math.sqrt(2)})


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


def test_what_is_usual_has_the_usual_signature() -> None:
    assert (
        build("diet-rel", position_in="cross, encoder,decoder").signature
        == build("diet-rel").signature
    )
    placed = build("diet-rel", position_in="decoder,encoder", position_input="sinusoidal")
    for encoding, at_input in (
        ("diet-rel", "none"),
        ("linformer", "learned"),
        ("learned", "learned"),
    ):
        assert build(encoding, position_input=at_input).signature == build(encoding).signature
    words = "diet-rel sharing=none in=encoder,decoder input=sinusoidal scale=head"
    assert placed.signature == words
    with pytest.raises(UserError, match="in=encoder,decoder"):
        build("diet-rel").load_state_dict(placed.state_dict())


@pytest.mark.parametrize(
    ("encoding", "options", "said"),
    [
        ("diet-rel", {"position_in": "encodr"}, "--position-in encodr: choose from"),
        ("diet-rel", {"position_in": ""}, "--position-in, a word is missing: choose from encoder"),
        ("rotary", {"position_in": "cross"}, "rotary acts only in encoder, decoder"),
        ("diet-abs-lin", {"position_in": "decoder,cross"}, "mixes keys in the encoder; add it"),
        ("t5", {"position_in": "cross", "no_cross_attention": True}, "there is no cross-attention"),
        ("learned", {"position_in": "encoder"}, "learned acts at the input alone"),
        ("diet-rel", {"position_input": "t5"}, "--position-input t5: acts inside attention"),
        ("learned", {"position_input": "sinusoidal"}, "learned is at the input itself"),
        ("diet-rel", {"position_input": "t6"}, "--position-input t6: unknown; choose from none"),
        ("diet-rel", {"position_input": ""}, r"input \(empty\): unknown; choose from none"),
        ("diet-rel", {"position_input": "shape", "position_shift": -1}, "shift -1: must be at"),
        ("diet-rel", {"position_input": "shape", "position_rank": 3}, "rank 3: diet-rel has no"),
    ],
)
def test_wrong_places(encoding: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        build(encoding, **options)


def test_an_encoder_alone_takes_an_input_and_no_places() -> None:
    given = {"position_encoding": "diet-abs", "position_input": "learned"}
    assert sentence_config(plain_options(Namespace(**given))).encoding.at_input.name == "learned"
    with pytest.raises(UserError, match="--position-in encoder: this model is an encoder alone"):
        sentence_config(plain_options(Namespace(position_in="encoder")))
