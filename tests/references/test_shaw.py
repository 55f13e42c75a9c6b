"""Shaw's keys against ``Wav2Vec2BertSelfAttention`` of transformers
(``models/wav2vec2_bert/modeling_wav2vec2_bert.py``) with ``relative_key``.

BERT's own ``relative_key`` is gone from transformers 5. This one, too, clips distances key - query
and shares one set of vectors among the heads; it has no values. Its two clips may differ, ours not.
"""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import AttentionShape
from diet_mt.positions.shaw import ShawPositions

from .outside import like_theirs, transformers

attention = transformers.models.wav2vec2_bert.modeling_wav2vec2_bert.Wav2Vec2BertSelfAttention

B, H, D = 2, 3, 4
E = H * D


@pytest.mark.parametrize("length", [1, 2, 7, 40])
@pytest.mark.parametrize("clip", [1, 3, 16, 64])
def test_the_same_weights_make_the_same_attention(clip: int, length: int) -> None:
    config = transformers.Wav2Vec2BertConfig(
        hidden_size=E,
        num_attention_heads=H,
        attention_dropout=0.0,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=clip,
        right_max_position_embeddings=clip,
        attn_implementation="eager",
    )
    theirs = attention(config).double().eval()
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
