"""ALiBi against BLOOM and MPT of transformers (``models/bloom``, ``models/mpt``).

Both write m_h j instead of -m_h (i - j), BLOOM counting the keys from the first and MPT from the
last: under a causal mask a constant per row, which softmax ignores. Neither has an encoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from diet_mt.positions import DECODER, AttentionShape
from diet_mt.positions.alibi import AlibiBias, slopes

from .outside import transformers

bloom = transformers.models.bloom.modeling_bloom
mpt = transformers.models.mpt.modeling_mpt

Rows = Callable[[int, int], Tensor]

T, D = 40, 4
# They compute slopes in float32, as powers of a base that is rounded itself.
ROUNDING = 1e-5


def of_bloom(heads: int, keys: int) -> Tensor:
    """(H, S) to add to every row."""
    return bloom.build_alibi_tensor(torch.ones(1, keys), heads, torch.float32)[:, 0]


def of_mpt(heads: int, keys: int) -> Tensor:
    """(H, S) to add to every row."""
    return mpt.build_mpt_alibi_tensor(heads, keys).reshape(heads, keys)


either = pytest.mark.parametrize("theirs", [of_bloom, of_mpt], ids=["bloom", "mpt"])
HEADS = range(1, 34)


@either
def test_slopes(theirs: Rows) -> None:
    """How much a key counts more than the one before it."""
    for heads in HEADS:
        row = theirs(heads, 2).double()
        found = torch.tensor(slopes(heads), dtype=torch.float64)
        torch.testing.assert_close(found, row[:, 1] - row[:, 0], rtol=ROUNDING, atol=0)


@either
def test_bias_up_to_a_constant_per_row(theirs: Rows) -> None:
    """Where the causal mask leaves anything: j <= i."""
    for heads in HEADS:
        ours = AlibiBias(AttentionShape(1, heads, D, T, T, DECODER))(range(T), range(T))[0]
        difference = theirs(heads, T).double()[:, None] - ours  # (H, T, T)
        for i in range(T):
            seen = difference[:, i, : i + 1]
            first = seen[:, :1].expand_as(seen)
            torch.testing.assert_close(seen, first, rtol=0, atol=T * ROUNDING)


@either
def test_weights_under_a_causal_mask(theirs: Rows) -> None:
    hidden = torch.full((T, T), -math.inf, dtype=torch.float64).triu(1)
    for heads in HEADS:
        content = torch.randn(heads, T, T, dtype=torch.float64)
        ours = AlibiBias(AttentionShape(1, heads, D, T, T, DECODER))(range(T), range(T))[0]
        found = torch.softmax(content + ours + hidden, dim=-1)
        expected = torch.softmax(content + theirs(heads, T).double()[:, None] + hidden, dim=-1)
        torch.testing.assert_close(found, expected, rtol=0, atol=T * ROUNDING)
