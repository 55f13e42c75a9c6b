"""ALiBi against BLOOM and MPT of transformers (``models/bloom``, ``models/mpt``) and, with trained
slopes, against the loops of Marian; T5 against ``T5Attention`` (``models/t5/modeling_t5.py``).

BLOOM and MPT write m_h j instead of -m_h (i - j), BLOOM counting the keys from the first and MPT
from the last: under a causal mask a constant per row, which softmax ignores. Neither has an
encoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from diet_mt.positions import CROSS, DECODER, ENCODER, AttentionShape, create
from diet_mt.positions.decay import AlibiBias
from diet_mt.positions.t5 import T5Bias, buckets_of

from .outside import causal_mask, like_theirs, modeling, transformers

bloom, mpt, t5 = modeling("bloom"), modeling("mpt"), modeling("t5")

Rows = Callable[[int, int], Tensor]

B, H, T, D = 2, 3, 40, 4
E = H * D
HEADS = range(1, 34)
# They compute slopes in float32, as powers of a base that is rounded itself.
ROUNDING = 1e-5


def of_bloom(heads: int, keys: int) -> Tensor:
    """(H, S) to add to every row."""
    return bloom.build_alibi_tensor(torch.ones(1, keys), heads, torch.float32)[:, 0]


def of_mpt(heads: int, keys: int) -> Tensor:
    """(H, S) to add to every row."""
    return mpt.build_mpt_alibi_tensor(heads, keys).reshape(heads, keys)


either = pytest.mark.parametrize("theirs", [of_bloom, of_mpt], ids=["bloom", "mpt"])


@either
def test_alibi_under_a_causal_mask(theirs: Rows) -> None:
    """A constant per row, and so the same weights."""
    hidden = torch.full((T, T), -math.inf, dtype=torch.float64).triu(1)
    for heads in HEADS:
        ours = AlibiBias(AttentionShape(1, heads, D, T, T, DECODER))(range(T), range(T))[0]
        bias = theirs(heads, T).double()[:, None]
        for i, row in enumerate((bias - ours).unbind(1)):
            seen = row[:, : i + 1]
            first = seen[:, :1].expand_as(seen)
            torch.testing.assert_close(seen, first, rtol=0, atol=T * ROUNDING)
        content = torch.randn(heads, T, T, dtype=torch.float64) + hidden
        weights, expected = (torch.softmax(content + x, dim=-1) for x in (ours, bias))
        torch.testing.assert_close(weights, expected, rtol=0, atol=T * ROUNDING)


HIDDEN = 99999999.0  # of masked keys, negative


def of_marian(
    slopes: np.ndarray, biases: np.ndarray, start: int, mask: np.ndarray, adjoint: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The logits (H, T, S) and the gradients of slopes and biases (H,), by the equations of
    ``gAlibi`` and ``gAlibiGrad`` in ``src/layers_new/alibi.cu`` of marian-dev a7cc324.

    ``start``: position of the first query; ``mask`` (T, S): 1 or 0; ``adjoint`` (H, T, S).
    """
    logits, of_slopes, of_biases = (
        np.zeros(size) for size in (adjoint.shape, len(slopes), len(slopes))
    )
    for head, query, key in np.ndindex(adjoint.shape):
        seen, gradient = mask[query, key], adjoint[head, query, key]
        moved = float(key) - float(query + start) + biases[head]
        logits[head, query, key] = min((2 * seen - 1) * HIDDEN, slopes[head] * abs(moved))
        of_slopes[head] += seen * abs(moved) * gradient
        side = float(moved > 0) - float(moved < 0)
        of_biases[head] += seen * slopes[head] * side * gradient
    return logits, of_slopes, of_biases


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize(
    ("kind", "start", "queries", "keys"),
    [
        (ENCODER, 0, 9, 9),
        (DECODER, 0, 9, 9),
        (DECODER, 8, 1, 9),
        (CROSS, 0, 5, 9),
        (CROSS, 4, 1, 9),
    ],
)
def test_trained_slopes(kind: str, start: int, queries: int, keys: int, drawn: bool) -> None:
    """With the initial values, where keys at the centre have no gradient, and others."""
    bias = create("alibi", trained_slopes=True, heads=8, head_dim=D, max_length=9, kind=kind)
    parameters = dict(bias.double().named_parameters())
    for parameter in parameters.values() if drawn else ():
        torch.nn.init.normal_(parameter)
    mask = torch.ones(queries, keys, dtype=torch.float64)
    if kind == DECODER:
        mask.tril_(start)
    else:
        mask[:, -2:] = 0  # padding
    ours = bias.for_layers(range(start, start + queries), range(keys))[0].bias
    assert ours is not None
    logits = ours.masked_fill(mask == 0, -HIDDEN)
    adjoint = torch.randn_like(logits)
    logits.backward(adjoint)
    slopes, biases = (parameters[f"shared.{name}"] for name in ("slope", "offset"))
    expected = of_marian(
        *(each.detach().flatten().numpy() for each in (slopes, biases)),
        start, mask.numpy(), adjoint.numpy(),
    )  # fmt: skip
    for got, theirs in zip((logits, slopes.grad, biases.grad), expected, strict=True):
        assert got is not None
        torch.testing.assert_close(
            got.reshape(theirs.shape), torch.from_numpy(theirs), rtol=0, atol=1e-12
        )


# Buckets and the distance from which on they are one.
SIZES = [(32, 128), (8, 6), (4, 3), (16, 20), (64, 256), (32, 17), (10, 100), (128, 5000)]
any_size = pytest.mark.parametrize(("buckets", "far"), SIZES)
any_kind = pytest.mark.parametrize("kind", [ENCODER, DECODER])


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
    theirs = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
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
    distance = torch.arange(-300, 301)
    causal = kind == DECODER
    numbers = t5.T5Attention._relative_position_bucket(
        distance, bidirectional=not causal, num_buckets=buckets, max_distance=far
    )
    assert torch.equal(buckets_of(distance, buckets, far, causal=causal), numbers)
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
    projections = {f"{name}_proj": getattr(theirs, letter) for letter, name in PROJECTIONS.items()}
    out, weights = like_theirs(ours.double(), x, projections, scale=1.0)
    # They take the softmax of float64 logits in float32: shares are off by up to 6e-8.
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=2e-7)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)


PROJECTIONS = {"q": "q", "k": "k", "v": "v", "o": "out"}
