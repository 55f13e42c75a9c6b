"""--quant-noise-scalar with subclasses of fairseq's layers, with every encoding, without a GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding
from fairseq.modules.quantization.scalar import ops, quantize_model_
from fairseq.modules.quantization.scalar.modules import IntEmbedding, IntLinear
from torch import Tensor, nn

from diet_mt.errors import UserError
from diet_mt.layers.stack import PaddedEmbedding, QuantizedPaddedEmbedding

from ..toy import build, collate, position_parameters, sources, targets

PAD = 1


class OtherwayLinear(nn.Linear):
    """The same product, computed in another way."""

    def forward(self, x: Tensor) -> Tensor:
        out = x @ self.weight.t()
        return out if self.bias is None else out + self.bias


class DeeperLinear(OtherwayLinear):
    """A subclass of a subclass."""


def quantized(layer: nn.Module, p: float = 0.1) -> Any:
    """What becomes of ``layer`` as a part of a model."""
    model = nn.ModuleDict({"layer": layer})
    quantize_model_(model, p=p, bits=8, update_step=1000)
    return model["layer"]


@pytest.mark.parametrize("kind", [nn.Linear, OtherwayLinear, DeeperLinear])
@pytest.mark.parametrize("bias", [True, False])
def test_subclasses_of_linear_layers_are_quantized_like_them(
    kind: type[nn.Linear], bias: bool
) -> None:
    torch.manual_seed(1)
    layer = kind(5, 7, bias=bias)
    weight, added = layer.weight, layer.bias
    x = torch.randn(3, 5)
    expected = layer(x)
    found = quantized(layer)
    assert type(found) is IntLinear
    assert found.weight is weight
    assert found.bias is added
    y = found.eval()(x)
    assert y.shape == (3, 7)
    # Weights and what comes out are rounded to 256 steps of their range each.
    assert 0 < (y - expected).abs().max() < 0.05


def padded(width: int = 8) -> PaddedEmbedding:
    torch.manual_seed(1)
    return PaddedEmbedding.around(nn.Embedding(6, 5, padding_idx=PAD), width)


def test_a_padded_embedding_stays_padded() -> None:
    layer = padded()
    tokens = torch.tensor([[0, 2, 3], [4, 5, PAD]])
    expected = layer(tokens)
    found = quantized(layer)
    assert type(found) is QuantizedPaddedEmbedding
    assert found.weight is layer.weight
    assert found.embedding_dim == 8
    for mode in (True, False):
        rows = found.train(mode)(tokens)
        assert rows.shape == (2, 3, 8)
        assert rows[..., :5].any()
        assert not rows[..., 5:].any(), "zero also when rounded to 8 bits"
    assert 0 < (rows - expected).abs().max() < 0.05
    found.train()(tokens).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad[2].eq(1).all()


def test_subclasses_of_a_padded_embedding() -> None:
    class Own(PaddedEmbedding):
        """Another name alone."""

    layer = Own.around(nn.Embedding(6, 5), 8)
    assert type(layer) is Own
    assert type(quantized(layer)) is QuantizedPaddedEmbedding


def test_other_embeddings_are_refused() -> None:
    """fairseq's learned positions look up the positions of tokens, not the tokens."""
    with pytest.raises(UserError, match=r"--quant-noise-scalar: LearnedPos\w+ has no quantized"):
        quantized(LearnedPositionalEmbedding(9, 4, PAD))


def test_a_plain_embedding_is_left_to_fairseq() -> None:
    assert type(quantized(nn.Embedding(6, 5))) is IntEmbedding


def test_scale_and_zero_point_stay_where_the_weights_are() -> None:
    torch.manual_seed(1)
    w = torch.randn(20, 30)
    rounded, scale, zero_point = ops.emulate_int(w, bits=8, method="histogram")
    assert scale.device == zero_point.device == w.device
    assert scale.dtype == zero_point.dtype == w.dtype
    assert (rounded - w).abs().max() <= scale / 2 + 1e-6
    assert len((rounded / scale).round().unique()) <= 256
    again, same_scale, same_zero = ops.emulate_int(
        w, bits=8, method="histogram", scale=scale, zero_point=zero_point
    )
    assert torch.equal(again, rounded)
    assert same_scale is scale
    assert same_zero is zero_point


@pytest.mark.parametrize("encoding", ["diet-rel", "tupe-rel", "linformer", "concat"])
def test_tables_of_positions_stay_as_they_are(encoding: str) -> None:
    """They learn without noise, and keep their precision."""
    model = build(encoding, encoder_layers=1, decoder_layers=1).float()
    before = position_parameters(model)
    quantize_model_(model, p=0.1, bits=8, update_step=1000)
    assert type(model.encoder.layers[0].fc1) is IntLinear
    after = position_parameters(model)
    assert after.keys() == before.keys()
    assert all(after[name] is table for name, table in before.items())
    out, _ = model(collate(sources(), "left"), None, collate(targets()))
    assert torch.isfinite(out).all()
    out.sin().sum().backward()
    for name, table in after.items():
        assert table.grad is not None, name
        assert table.grad.any(), name
