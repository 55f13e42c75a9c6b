"""Public reports of wrong positions, in other implementations of the same encodings."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.positions import CROSS, DECODER, ENCODER, AttentionShape
from diet_mt.positions.deberta import DebertaPositions
from diet_mt.positions.decay import AlibiBias, slopes
from diet_mt.positions.rotary import Rotary, RotaryPositions, RotaryTerms
from diet_mt.positions.shaw import ShawPositions, ShawTerms
from diet_mt.positions.t5 import T5Bias, buckets_of

from ..toy import (
    EOS,
    FIRST_WORD,
    PAD,
    attention_positions,
    build,
    close,
    collate,
    each_encoding,
    each_kind,
    position_parameters,
    sources,
    targets,
)

H, D = 2, 4


def shape(kind: str = ENCODER, length: int = 400) -> AttentionShape:
    return AttentionShape(1, H, D, length, length, kind)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
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


def test_rotary_turns_neighbouring_columns() -> None:
    """gpt-neox #834, FasterTransformer #451: which two columns are turned together."""
    (part,) = RotaryPositions(shape(), Rotary()).for_layers(range(1, 2), range(2))
    turned = part.queries(torch.eye(D)[None, :1, None, :])  # the first column alone
    expected = torch.tensor([math.cos(1), math.sin(1), 0.0, 0.0])
    torch.testing.assert_close(turned[0, 0, 0], expected)


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (8, [2.0**-n for n in range(1, 9)]),
        (12, [2.0**-n for n in range(1, 9)] + [2.0**-n for n in (0.5, 1.5, 2.5, 3.5)]),
        (6, [2.0**-n for n in (2, 4, 6, 8, 1, 3)]),
    ],
)
def test_alibi_slopes(heads: int, expected: list[float]) -> None:
    """mlx #343: slopes of 12 heads are those of a plain series.

    attention_with_linear_biases #17: they jump up after the 8th. aprender #2143: the first is 1.
    """
    assert slopes(heads) == pytest.approx(expected)


def test_alibi_distances_in_half_precision() -> None:
    """gpt-neox #1016: 256 and 257 are one number in bfloat16."""
    bias = AlibiBias(shape(DECODER)).bfloat16()(range(300, 301), range(301))[0, :, 0]
    distance = torch.arange(300, -1, -1, dtype=bias.dtype)
    torch.testing.assert_close(bias, -torch.tensor([[0.0625], [0.00390625]]) * distance)


def table(bias: T5Bias) -> Tensor:
    """Its one table (H, buckets), now with different numbers."""
    (found,) = bias.tables()
    values: Tensor = found.get_parameter("by_bucket")
    with torch.no_grad():
        values.copy_(torch.arange(values.numel(), dtype=values.dtype).view_as(values))
    return values


@pytest.mark.parametrize("kind", [ENCODER, DECODER, CROSS])
def test_t5_of_cached_keys(kind: str) -> None:
    """transformers #19045, candle #899: beside cached keys a new query is at position 0."""
    bias = T5Bias(shape(kind), "layer-wise", 8, 20)
    table(bias)
    whole = bias(range(50), range(50))
    for step in (0, 1, 7, 49):
        assert torch.equal(bias(range(step, step + 1), range(50)), whole[:, :, step : step + 1])


def test_t5_buckets() -> None:
    """x-transformers #10: which bucket a distance has, here of 8 up to distance 20."""
    distance = torch.tensor([-20, -7, -6, -2, -1, 0, 1, 2, 6, 7, 20])
    # Both directions: 2 of 4 for each distance, and 2 + int(2 log(d / 2) / log(20 / 2)).
    assert buckets_of(distance, 8, 20, causal=False).tolist() == [3, 3, 2, 2, 1, 0, 5, 6, 6, 7, 7]
    # One: 4 of 8 for each distance, and 4 + int(4 log(d / 4) / log(20 / 4)).
    assert buckets_of(distance, 8, 20, causal=True).tolist() == [7, 5, 5, 2, 1, 0, 0, 0, 0, 0, 0]


def test_t5_in_cross_attention() -> None:
    """text-to-text-transfer-transformer #415: all source words behind position i are at distance 0.

    transformers #8518: cross-attention has a bias where T5 has none.
    """
    bias = T5Bias(shape(CROSS), "layer-wise", 8, 20)
    table(bias)
    row = bias(range(3, 4), range(7))[0, 0, 0].tolist()
    assert row[4:] == [5, 6, 6]
    assert row[:4] == [2, 2, 1, 0]
    model = build("t5", position_in="encoder,decoder")
    assert attention_positions(model, "cross") is None
    assert attention_positions(model, "decoder") is not None


@each_encoding
def test_decoder_attention_of_cached_keys(encoding: str, sharing: str | None) -> None:
    """transformers #20203: logits with cached keys are not those without."""
    model = build(encoding, sharing).eval()
    source, previous = collate(sources((5,))), collate(targets((6,)))
    with torch.no_grad():
        whole, _ = model(source, None, previous)
        encoded, state = model.encoder(source, None), dict[str, Any]()
        for length in range(1, 7):
            step, _ = model.decoder(previous[:, :length], encoded, incremental_state=state)
            close(step[:, 0], whole[:, length - 1])


def test_shaw_and_fp16_gradients() -> None:
    """fairseq #646: training with relative positions stops in fp16."""
    model = build("shaw").half()
    out, _ = model(collate(sources(), "left"), None, collate(targets()))
    out.float().square().mean().backward()
    for name, parameter in position_parameters(model).items():
        assert parameter.grad is not None
        assert parameter.grad.dtype == torch.float16
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name


def test_shaw_clips_to_both_sides() -> None:
    """OpenNMT-py #1244: vectors of a decoding step are those of whole sentences, clipped."""
    positions = ShawPositions(shape(DECODER), "head-wise", 2, values=False).double()
    (table,) = positions.tables()
    vectors = table.get_parameter("of_keys")  # (1, 5, D), of j - i = -2 to 2
    (part,) = positions.for_layers(range(4, 5), range(5))
    assert isinstance(part, ShawTerms)
    q = torch.randn(1, H, 1, D, dtype=torch.float64)
    logits = part.query_bias(q, 5, 1.0)
    expected = q[0, :, 0] @ vectors[0, [0, 0, 0, 1, 2]].T
    torch.testing.assert_close(logits.reshape(H, 5), expected)


def test_deberta_looks_to_both_sides() -> None:
    """nntrainer #3982: position-to-content logits have the sign of the distance reversed."""
    positions = DebertaPositions(shape(length=3), "none", 3).double()
    with torch.no_grad():
        positions.relative.zero_()
        positions.relative[-1] = 1.0  # of distance 2 alone
    (part,) = positions.for_layers(range(3), range(3))
    ones = torch.ones(1, H, 3, D, dtype=torch.float64)
    found = part.query_bias(ones, 3, 1.0), part.key_bias(ones, 1.0)
    for logits in found:
        assert logits is not None
        assert logits[0, 0].nonzero().tolist() == [[2, 0]]


@each_kind
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
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
