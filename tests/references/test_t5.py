"""T5 against ``T5Attention`` of transformers (``models/t5/modeling_t5.py``)."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import DECODER, ENCODER, AttentionShape
from diet_mt.positions.t5 import T5Bias, buckets_of

from .outside import causal_mask, like_theirs, transformers

T5Attention = transformers.models.t5.modeling_t5.T5Attention

B, H, T, D = 2, 3, 40, 4
E = H * D
# Buckets and the distance from which on they are one.
SIZES = [(32, 128), (8, 6), (4, 3), (16, 20), (64, 256), (32, 17), (10, 100), (128, 5000)]
any_size = pytest.mark.parametrize(("buckets", "far"), SIZES)
any_kind = pytest.mark.parametrize("kind", [ENCODER, DECODER])


@any_size
@any_kind
def test_every_distance_has_the_same_bucket(buckets: int, far: int, kind: str) -> None:
    distance = torch.arange(-300, 301)
    causal = kind == DECODER
    theirs = T5Attention._relative_position_bucket(
        distance, bidirectional=not causal, num_buckets=buckets, max_distance=far
    )
    assert torch.equal(buckets_of(distance, buckets, far, causal=causal), theirs)


def pair(buckets: int, far: int, kind: str) -> tuple[T5Bias, torch.nn.Module]:
    """Our bias and their attention with one table."""
    config = transformers.T5Config(
        d_model=E,
        d_kv=D,
        num_heads=H,
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=far,
        dropout_rate=0.0,
        is_decoder=kind == DECODER,
        attn_implementation="eager",
    )
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
    ours = T5Bias(AttentionShape(1, H, D, T, T, kind), "none", buckets, far)
    with torch.no_grad():
        torch.nn.init.normal_(theirs.relative_attention_bias.weight)
        (table,) = ours.tables()
        # Theirs is (buckets, H).
        table.get_parameter("by_bucket").copy_(theirs.relative_attention_bias.weight.t())
    return ours, theirs


@any_size
@any_kind
def test_the_same_table_makes_the_same_bias(buckets: int, far: int, kind: str) -> None:
    ours, theirs = pair(buckets, far, kind)
    for start, queries, keys in ((0, T, T), (0, 5, 300), (0, 300, 5), (299, 1, 300)):
        bias = theirs.compute_bias(queries, keys, past_seen_tokens=start)
        assert torch.equal(ours(range(start, start + queries), range(keys)), bias)


@any_kind
def test_the_same_weights_make_the_same_attention(kind: str) -> None:
    """T5 does not divide q . k: a scale of 1."""
    ours, theirs = pair(16, 20, kind)
    x = torch.randn(B, T, E, dtype=torch.float64)
    mask = causal_mask(T, x.dtype) if kind == DECODER else None
    expected, _, expected_weights = theirs.double()(x, mask=mask, output_attentions=True)
    projections = {
        "q_proj": theirs.q,
        "k_proj": theirs.k,
        "v_proj": theirs.v,
        "out_proj": theirs.o,
    }
    out, weights = like_theirs(ours.double(), x, projections, scale=1.0)
    # They take the softmax of float64 logits in float32: shares are off by up to 6e-8.
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=2e-7)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
