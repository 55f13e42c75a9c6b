"""Public reports of wrong positions and losses, tried with this package's models."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from diet_mt.corpora.binarized import read_dictionary
from diet_mt.positions import CROSS, DECODER, ENCODER, AttentionShape
from diet_mt.positions.decay import AlibiBias
from diet_mt.positions.rotary import Rotary, RotaryPositions, RotaryTerms
from diet_mt.positions.t5 import T5Bias
from diet_mt.system.errors import UserError

from ..fairseq_patches.test_fast_paths import batch, criterion
from ..toy import (
    EOS,
    FIRST_WORD,
    PAD,
    attention_positions,
    build,
    close,
    collate,
    each_kind,
    sources,
    targets,
)

H, D = 2, 4
halves = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])


def shape(kind: str = ENCODER, length: int = 400) -> AttentionShape:
    return AttentionShape(1, H, D, length, length, kind)


@halves
@pytest.mark.parametrize("position", [257, 1857, 4097, 32769])
def test_rotary_angles_in_half_precision(dtype: torch.dtype, position: int) -> None:
    """gpt-neox #1003, transformers #29496, Megatron-LM #535: rotary angles are rounded to the
    precision of the model, and positions run together.
    """
    positions = RotaryPositions(AttentionShape(1, 1, 32, 1, 1), Rotary()).to(dtype)
    (part,) = positions.for_layers(range(position, position + 1), range(position + 1))
    assert isinstance(part, RotaryTerms)
    assert part.rotation is not None
    for pair, turn in enumerate(part.rotation[0].tolist()):
        angle = position * 10000 ** (-2 * pair / 32)
        assert turn == pytest.approx(complex(math.cos(angle), math.sin(angle)), abs=1e-6)


def test_rotary_keeps_the_precision_of_queries() -> None:
    """transformers #24262: rotary turns half precision into float32 on the way."""
    (part,) = RotaryPositions(shape(), Rotary()).bfloat16().for_layers(range(3), range(3))
    x = torch.randn(1, H, 3, D, dtype=torch.bfloat16)
    assert part.queries(x).dtype == part.keys(x, None).dtype == torch.bfloat16


def test_alibi_distances_in_half_precision() -> None:
    """gpt-neox #1016: 256 and 257 are one number in bfloat16."""
    bias = AlibiBias(shape(DECODER)).bfloat16()(range(300, 301), range(301))[0, :, 0]
    distance = torch.arange(300, -1, -1, dtype=bias.dtype)
    torch.testing.assert_close(bias, -torch.tensor([[0.0625], [0.00390625]]) * distance)


def test_t5_in_cross_attention() -> None:
    """text-to-text-transfer-transformer #415: all source words behind position i are at distance 0.

    transformers #8518: cross-attention has a bias where T5 has none.
    """
    bias = T5Bias(shape(CROSS), "layer-wise", 8, 20)
    (table,) = bias.tables()
    values = table.get_parameter("by_bucket")
    with torch.no_grad():
        values.copy_(torch.arange(values.numel(), dtype=values.dtype).view_as(values))
    assert bias(range(3, 4), range(7))[0, 0, 0].tolist() == [2, 2, 1, 0, 5, 6, 6]
    model = build("t5", position_in="encoder,decoder")
    assert attention_positions(model, "cross") is None
    assert attention_positions(model, "decoder") is not None


@each_kind
@halves
def test_sentences_of_padding_alone(encoding: str, sharing: str | None, dtype: torch.dtype) -> None:
    """pytorch #103749, Graphormer #141: a row without any key is NaN, here also in half precision.

    fairseq #3575: the number that closes a key is too large for fp16.
    """
    model = build(encoding, sharing).to(dtype)
    source, previous = collate(sources(), "left"), collate(targets())
    before, _ = model(source, None, previous)
    source[3] = PAD
    after, _ = model(source, None, previous)
    assert torch.isfinite(after).all()
    kept = [0, 1, 2, 4]
    torch.testing.assert_close(after[kept], before[kept])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("encoding", ["learned", "sinusoidal", "tupe-abs"])
def test_absolute_positions_count_words_alone(encoding: str, side: str) -> None:
    """fairseq #1177: position numbers depend on the number of the padding symbol.

    transformers #15292: a sentence as long as the table reads beyond its end.
    """
    model = build(encoding).eval()
    longest = [FIRST_WORD + n for n in range(10)] + [EOS]  # n_S is 11
    together = model.encoder(collate([longest, [5, EOS]], side), None)["encoder_out"][0]
    close(together[:2, 1], model.encoder(torch.tensor([[5, EOS]]), None)["encoder_out"][0][:, 0])
    close(together[:, 0], model.encoder(torch.tensor([longest]), None)["encoder_out"][0][:, 0])


def test_label_smoothing_by_hand() -> None:
    """fairseq #3182: the target gets eps / V on top of 1 - eps.

    label_smoothing: 1 - eps for the target, and eps for the others together.
    """
    model = build("diet-rel")
    made, sample = criterion(0.1), batch()
    made.padding_idx = PAD
    loss, size, logged = made(model, sample)
    logs = model(**sample["net_input"])[0].log_softmax(-1)
    others = logs.size(-1) - 1
    expected = logs.new_zeros(())
    for row, words in zip(logs, sample["target"], strict=True):
        for log, word in zip(row, words, strict=True):
            if word != PAD:
                expected -= 0.9 * log[word] + 0.1 * (log.sum() - log[word]) / others
    close(loss, expected)
    assert size == logged["ntokens"] == sample["target"].ne(PAD).sum()


@pytest.mark.parametrize("encoding", ["t5", "rotary", "alibi", "shaw"])
def test_positions_without_end_load_at_any_length(encoding: str) -> None:
    """transformers #8518: relative positions have no longest sentence to be of one size with."""
    longer = build(encoding, max_source_positions=40, max_target_positions=40, seed=2)
    longer.load_state_dict(build(encoding).state_dict())


@pytest.mark.parametrize("word", ["<s>", "<pad>", "</s>", "<unk>"])
def test_special_symbols_in_a_dictionary(word: str, tmp_path: Path) -> None:
    """fairseq #1309: symbols of fairseq in a dictionary are there twice, and numbers shift."""
    file = tmp_path / "dict.txt"
    file.write_text(f"a 3\n{word} 2\nb 1\n", encoding="utf-8")
    with pytest.raises(UserError, match=f"line 2: .*'{word}'"):
        read_dictionary(file)
