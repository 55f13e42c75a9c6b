"""Rotary against ``GPTJAttention`` of transformers (``models/gptj/modeling_gptj.py``), which also
turns neighbouring columns.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.positions import DECODER, AttentionShape
from diet_mt.positions.frequencies import Scaling
from diet_mt.positions.rotary import RotaryLayer, RotaryPositions, rotate

from .outside import causal_mask, like_theirs, transformers

gptj = transformers.models.gptj.modeling_gptj

B, H, T, D = 2, 3, 50, 8
E = H * D


def their_tables(length: int, size: int) -> tuple[Tensor, Tensor]:
    """cos and sin, (T, D/2) each, in float32."""
    sin, cos = gptj.create_sinusoidal_positions(length, size).chunk(2, dim=1)
    return cos, sin


def ours_of(start: int, length: int, size: int) -> RotaryLayer:
    positions = RotaryPositions(
        AttentionShape(1, H, size, length, length, DECODER), Scaling()
    ).double()
    (part,) = positions.for_layers(range(start, start + length), range(start + length))
    assert isinstance(part, RotaryLayer)
    return part


@pytest.mark.parametrize("size", [2, 4, 8, 64, 128])
def test_tables(size: int) -> None:
    cos, sin = their_tables(300, size)
    ours = ours_of(0, 300, size)
    assert ours.turn is not None
    # Their angles are float32, and near 300 off by half of 3e-5.
    torch.testing.assert_close(ours.turn.real.float(), cos, rtol=0, atol=4e-5)
    torch.testing.assert_close(ours.turn.imag.float(), sin, rtol=0, atol=4e-5)


@pytest.mark.parametrize("size", [2, 8, 64])
def test_the_same_tables_turn_in_the_same_way(size: int) -> None:
    """Theirs is (B, T, H, D)."""
    x = torch.randn(B, H, T, size, dtype=torch.float64)
    cos, sin = (table.double() for table in their_tables(T, size))
    theirs = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin[None], cos[None]).transpose(1, 2)
    torch.testing.assert_close(rotate(x, torch.complex(cos, sin)), theirs, rtol=0, atol=1e-14)


@pytest.mark.parametrize("start", [0, 17])
def test_queries_and_keys(start: int) -> None:
    q, k = torch.randn(2, B, H, T, D, dtype=torch.float64)
    cos, sin = (table[start:].double() for table in their_tables(start + T, D))
    part = ours_of(start, T, D)
    for ours, x in ((part.queries(q), q), (part.keys(k, None), k)):
        theirs = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin[None], cos[None])
        torch.testing.assert_close(ours, theirs.transpose(1, 2), rtol=0, atol=4e-5)


def test_the_same_weights_make_the_same_attention() -> None:
    config = transformers.GPTJConfig(
        n_positions=T, n_embd=E, n_head=H, rotary_dim=D, attn_pdrop=0.0, resid_pdrop=0.0
    )
    theirs = gptj.GPTJAttention(config, layer_idx=0).eval()
    x = torch.randn(B, T, E)
    place = torch.arange(T).expand(B, T)
    expected, expected_weights = theirs(
        x, attention_mask=causal_mask(T, x.dtype), position_ids=place
    )
    projections = {name: getattr(theirs, name) for name in ("q_proj", "k_proj", "v_proj")}
    projections["out_proj"] = theirs.out_proj
    ours = RotaryPositions(AttentionShape(1, H, D, T, T, DECODER), Scaling())
    out, weights = like_theirs(ours, x, projections, scale=D**-0.5)
    # All in float32, their angles too: weights up to 1, outputs of the size of x.
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-5)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
