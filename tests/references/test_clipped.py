"""DeBERTa against ``DisentangledSelfAttention`` of transformers
(``models/deberta/modeling_deberta.py``), the authors' code with another interface; Shaw's keys
against ``Wav2Vec2BertSelfAttention`` (``models/wav2vec2_bert/modeling_wav2vec2_bert.py``) with
``relative_key``.

BERT's own ``relative_key`` is gone from transformers 5. This one, too, clips distances key - query
and shares one set of vectors among the heads; it has no values. Its two clips may differ, ours not.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from diet_mt.positions import AttentionShape
from diet_mt.positions.deberta import DebertaPositions
from diet_mt.positions.shaw import ShawPositions

from .outside import like_theirs, modeling, transformers

deberta, wav2vec2 = modeling("deberta"), modeling("wav2vec2_bert")

B, H, D = 2, 3, 4
E = H * D
any_length = pytest.mark.parametrize("length", [1, 2, 7, 40])
any_clip = pytest.mark.parametrize("clip", [1, 3, 16, 64])


def their_deberta(clip: int) -> nn.Module:
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
    layers: dict[str, nn.Module] = {"out_proj": nn.Linear(E, E).double()}
    with torch.no_grad():
        layers["out_proj"].get_parameter("weight").copy_(torch.eye(E))
        layers["out_proj"].get_parameter("bias").zero_()
        for number, name in enumerate(("q_proj", "k_proj", "v_proj")):
            layers[name] = nn.Linear(E, E).double()
            layers[name].get_parameter("weight").copy_(weight[:, number].flatten(0, 1))
            bias = {0: "q_bias", 2: "v_bias"}.get(number)
            given = torch.zeros(E) if bias is None else attention.get_parameter(bias)
            layers[name].get_parameter("bias").copy_(given)
    return layers


@any_length
@any_clip
def test_deberta(clip: int, length: int) -> None:
    attention = their_deberta(clip)
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


@any_length
@any_clip
def test_shaw(clip: int, length: int) -> None:
    config = transformers.Wav2Vec2BertConfig(
        hidden_size=E,
        num_attention_heads=H,
        attention_dropout=0.0,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=clip,
        right_max_position_embeddings=clip,
        attn_implementation="eager",
    )
    theirs = wav2vec2.Wav2Vec2BertSelfAttention(config).double().eval()
    shape = AttentionShape(1, H, D, length, length)
    positions = ShawPositions(shape, "head-wise", clip, values=False).double()
    (table,) = positions.tables()
    with torch.no_grad():
        table.get_parameter("of_keys").copy_(theirs.distance_embedding.weight[None])
    x = torch.randn(B, length, E, dtype=torch.float64)
    expected, expected_weights = theirs(x, output_attentions=True)
    projections = {
        f"{name}_proj": getattr(theirs, f"linear_{name}") for name in ("q", "k", "v", "out")
    }
    out, weights = like_theirs(positions, x, projections, scale=D**-0.5)
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
