"""Positions matter, only where they should, and only where they are placed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import attention

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


def logits(model: DietTransformerModel) -> Tensor:
    model.eval()
    source, target = collate(sources()), collate(targets())
    out: Tensor = model(source, source.ne(1).sum(1), target)[0]
    return out


@pytest.mark.parametrize("at_input", ["sinusoidal", "learned", "concat"])
def test_the_input_is_that_of_the_other_encoding(at_input: str) -> None:
    both, alone = build("diet-rel", position_input=at_input), build(at_input)
    copy_content_weights(alone, both)
    theirs, ours = position_parameters(alone), position_parameters(both)
    with torch.no_grad():
        for name, table in ours.items():
            table.copy_(theirs[name]) if name in theirs else nn.init.zeros_(table)
    torch.testing.assert_close(logits(both), logits(alone), rtol=0, atol=1e-12)


def test_what_only_the_input_has_is_an_option_of_the_input() -> None:
    model = build("diet-rel", position_input="concat", position_rank=3)
    assert model.encoder.embed_positions.weight.shape[1] == 3
    assert model.signature == "diet-rel sharing=none input=concat rank=3 scale=head"
    # Where both have it, it is that of the encoding.
    model = build("diet-abs", position_input="concat", position_rank=3)
    assert model.encoder.embed_positions.weight.shape[1] != 3
    assert model.signature == "diet-abs sharing=layer-wise rank=3 input=concat scale=head"
