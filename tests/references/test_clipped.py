"""DeBERTa against ``DisentangledSelfAttention`` of transformers, version 1
(``models/deberta/modeling_deberta.py``) and versions 2 and 3 (``models/deberta_v2``), the authors'
code with another interface; Transformer-XL against ``XLNetRelativeAttention``
(``models/xlnet/modeling_xlnet.py``); Shaw's keys against ``Wav2Vec2BertSelfAttention``
(``models/wav2vec2_bert/modeling_wav2vec2_bert.py``) with ``relative_key``.

BERT's own ``relative_key`` is gone from transformers 5. This one, too, clips distances key - query
and shares one set of vectors among the heads; it has no values. Its two clips may differ, ours not.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.positions import DECODER, ENCODER, AttentionShape
from diet_mt.positions.deberta import Deberta, DebertaPositions
from diet_mt.positions.shaw import ShawPositions
from diet_mt.positions.transformer_xl import TransformerXlPositions

from .outside import like_theirs, modeling, transformers

deberta, deberta_v2 = modeling("deberta"), modeling("deberta_v2")
wav2vec2, xlnet = modeling("wav2vec2_bert"), modeling("xlnet")

B, H, D = 2, 3, 4
E = H * D
CONFIG: dict[str, Any] = {
    "hidden_size": E,
    "num_attention_heads": H,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "attention_probs_dropout_prob": 0.0,
    "hidden_dropout_prob": 0.0,
}
any_length = pytest.mark.parametrize("length", [1, 2, 7, 40])
any_clip = pytest.mark.parametrize("clip", [1, 3, 16, 64])


def content(attention: nn.Module) -> dict[str, nn.Module]:
    """Their projections, which stand by head: queries, keys and values of each."""
    weight = attention.get_parameter("in_proj.weight").unflatten(0, (H, 3, D))
    layers = {}
    with torch.no_grad():
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
    config = transformers.DebertaConfig(max_relative_positions=clip, **CONFIG)
    attention: nn.Module = deberta.DisentangledSelfAttention(config).double().eval()
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    nn.init.zeros_(attention.get_parameter("pos_q_proj.bias"))  # they add it to all of Q^r
    shape, encoding = AttentionShape(1, H, D, length, length), Deberta(clip=clip)
    ours = DebertaPositions(shape, "none", encoding).double()
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


# Buckets and the distance from which on there is one last bucket; a length beyond.
any_buckets = pytest.mark.parametrize(
    ("buckets", "clip", "length"), [(256, 512, 600), (32, 64, 90), (8, 20, 40), (4, 6, 9)]
)


@any_buckets
def test_buckets_of_deberta(buckets: int, clip: int, length: int) -> None:
    ours = Deberta(clip=clip, buckets=buckets)
    theirs = deberta_v2.make_log_bucket_position(torch.arange(-length, length), buckets, clip)
    assert [ours.bucket(distance) for distance in range(-length, length)] == theirs.tolist()


@pytest.mark.parametrize("shared", [True, False])
@any_buckets
def test_deberta_of_versions_2_and_3(buckets: int, clip: int, length: int, shared: bool) -> None:
    config = transformers.DebertaV2Config(max_relative_positions=clip, **CONFIG)
    config.position_buckets, config.share_att_key = buckets, shared
    theirs = deberta_v2.DisentangledSelfAttention(config).eval()
    encoding = Deberta(clip=clip, buckets=buckets, shared_projections=shared or None)
    shape = AttentionShape(1, H, D, length, length)
    ours = DebertaPositions(shape, encoding.sharing, encoding).double()
    nn.init.normal_(ours.relative)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    theirs.double()  # like_theirs holds weights of float32
    for table in ours.tables():
        for name in ("key", "query"):
            projection = getattr(theirs, f"pos_{name}_proj")
            nn.init.zeros_(projection.bias)  # ours has none
            with torch.no_grad():
                weight = projection.weight.unflatten(0, (H, D)).transpose(1, 2)  # (H, E, D)
                table.get_parameter(name).copy_(weight)
    x = torch.randn(B, length, E, dtype=torch.float64)
    mask = torch.ones(B, 1, length, length, dtype=torch.bool)
    expected, expected_weights = theirs(x, mask, True, rel_embeddings=ours.relative)
    projections = {
        f"{name[0]}_proj": getattr(theirs, f"{name}_proj") for name in ("query", "key", "value")
    }
    out, weights = like_theirs(ours, x, projections, scale=(3 * D) ** -0.5)
    # They divide by a square root that is rounded to float32.
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-5)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-4)


def linear(weight: Tensor) -> nn.Module:
    """x W^T, in float64."""
    layer = nn.Linear(weight.size(1), weight.size(0), bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer


@any_length
@pytest.mark.parametrize("kind", [ENCODER, DECODER])
def test_transformer_xl(kind: str, length: int) -> None:
    config = transformers.XLNetConfig(d_model=E, n_head=H, d_inner=E, dropout=0.0)
    theirs = xlnet.XLNetRelativeAttention(config).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    theirs.double()  # like_theirs holds weights of float32
    ours = TransformerXlPositions(AttentionShape(1, H, D, length, length, kind), "none").double()
    (table,) = ours.tables()
    with torch.no_grad():
        table.get_parameter("key").copy_(theirs.r.transpose(0, 1))  # (H, E, D)
        ours.content.copy_(theirs.r_w_bias)
        ours.position.copy_(theirs.r_r_bias)
    x = torch.randn(B, length, E, dtype=torch.float64)
    # As in relative_positional_encoding, there in float32.
    distance = torch.arange(length, -length, -1, dtype=torch.float64)
    frequency = 1 / torch.pow(10000, torch.arange(0, E, 2, dtype=torch.float64) / E)
    sinusoids = xlnet.XLNetModel.positional_embedding(distance, frequency, B)
    parts = {name: getattr(theirs, name) for name in "qkvr"}  # (E, H, D) each
    q, k, v = (torch.einsum("bie,ehd->ibhd", x, parts[name]) for name in "qkv")
    r = torch.einsum("ibe,ehd->ibhd", sinusoids, parts["r"])
    hidden = torch.ones(length, length).triu(1)[:, :, None, None] if kind == DECODER else None
    by_head, expected_weights = theirs.rel_attn_core(
        q, k, v, r, attn_mask=hidden, output_attentions=True
    )
    projections = {f"{name}_proj": linear(parts[name].flatten(1).t()) for name in "qkv"}
    out, weights = like_theirs(ours, x, projections, scale=D**-0.5)
    torch.testing.assert_close(weights, expected_weights.permute(2, 3, 0, 1), rtol=0, atol=1e-11)
    torch.testing.assert_close(out, by_head.transpose(0, 1).flatten(2), rtol=0, atol=1e-11)


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
