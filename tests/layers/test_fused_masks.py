"""Masks for torch's fused kernels on a GPU: as they ask, though no GPU is here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from diet_mt.nn import attention

from ..toy import build, collate, each_encoding, sources, targets, without_weights

ALIGNED = 8  # numbers: 16 bytes in half precision


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("source", "target"),
    # Rows of a multiple of 8 keys that are parts of longer lines; lines of a multiple of 8.
    [((8,) * 3, (6,) * 3), ((10,) * 3, (8,) * 3), ((10, 7, 4), (8, 8, 2))],
    ids=["8-6", "10-8", "padded"],
)
@each_encoding
@torch.no_grad()
def test_torch_copies_no_mask(
    encoding: str,
    sharing: str | None,
    source: tuple[int, ...],
    target: tuple[int, ...],
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would copy one for each head and sentence; and where a mask begins it does not look."""
    found: list[Tensor] = []
    kernel = F.scaled_dot_product_attention

    def looking(*args: Any, attn_mask: Tensor | None = None, **options: Any) -> Tensor:
        if attn_mask is not None:
            found.append(attn_mask)
        return kernel(*args, attn_mask=attn_mask, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", looking)
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: True)
    model = build(encoding, sharing, **without_weights(encoding)).eval().to(dtype)
    model(collate(sources(source), "left"), None, collate(targets(target)))
    assert found or len(set(source)) == 1
    for mask in found:
        assert mask.stride(-1) == 1
        assert all(step % ALIGNED == 0 for step in mask.stride()[:-1])
        assert mask.data_ptr() % 16 == 0
