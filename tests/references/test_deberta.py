"""DeBERTa against ``DisentangledSelfAttention`` of transformers
(``models/deberta/modeling_deberta.py``), the authors' code with another interface.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from diet_mt.positions import AttentionShape
from diet_mt.positions.deberta import DebertaPositions

from .outside import like_theirs, transformers

deberta = transformers.models.deberta.modeling_deberta

B, H, D = 2, 3, 4
E = H * D


def theirs(clip: int) -> nn.Module:
    """Their attention in float64, without the number that they add to all of Q^r."""
    config = transformers.DebertaConfig(
        hidden_size=E,
        num_attention_heads=H,
        relative_attention=True,
        max_relative_positions=clip,
        pos_att_type=["c2p", "p2c"],
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0,
    )
    attention: nn.Module = deberta.DisentangledSelfAttention(config).double().eval()
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    nn.init.zeros_(attention.get_parameter("pos_q_proj.bias"))
    return attention


def content(attention: nn.Module) -> dict[str, nn.Module]:
    """Their projections, which stand by head: queries, keys and values of each."""
    weight = attention.get_parameter("in_proj.weight").unflatten(0, (H, 3, D))
    found: dict[str, nn.Module] = {}
    for number, name in enumerate(("q_proj", "k_proj", "v_proj")):
        found[name] = nn.Linear(E, E).double()
        bias = {0: "q_bias", 2: "v_bias"}.get(number)
        with torch.no_grad():
            found[name].get_parameter("weight").copy_(weight[:, number].flatten(0, 1))
            own = found[name].get_parameter("bias")
            own.copy_(torch.zeros(E) if bias is None else attention.get_parameter(bias))
    found["out_proj"] = nn.Linear(E, E).double()
    with torch.no_grad():
        found["out_proj"].get_parameter("weight").copy_(torch.eye(E))
        found["out_proj"].get_parameter("bias").zero_()
    return found


@pytest.mark.parametrize("length", [1, 2, 7, 40])
@pytest.mark.parametrize("clip", [1, 3, 16, 64])
def test_the_same_weights_make_the_same_attention(clip: int, length: int) -> None:
    attention = theirs(clip)
    ours = DebertaPositions(AttentionShape(1, H, D, length, length), "none", clip).double()
    nn.init.normal_(ours.relative)
    (table,) = ours.tables()
    with torch.no_grad():
        for name, outside in (("key", "pos_proj"), ("query", "pos_q_proj")):
            weight = attention.get_parameter(f"{outside}.weight").unflatten(0, (H, D))
            table.get_parameter(name).copy_(weight.transpose(1, 2))  # (H, E, D)
    x = torch.randn(B, length, E, dtype=torch.float64)
    place = torch.arange(length)
    expected, expected_weights = attention(
        x,
        torch.ones(B, 1, length, length, dtype=torch.bool),
        output_attentions=True,
        relative_pos=(place[:, None] - place)[None],
        rel_embeddings=ours.relative,
    )
    out, weights = like_theirs(ours, x, content(attention), scale=(3 * D) ** -0.5)
    # They divide by a square root that is rounded to float32.
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-6)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
