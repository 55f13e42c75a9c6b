"""Masks for torch's fused kernels on a GPU: as they ask, though no GPU is here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from diet_mt import attention

from ..toy import build, collate, each_encoding, sources, targets, without_weights

ALIGNED = 8  # numbers: 16 bytes in half precision


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("source", "target"),
    # Rows of a multiple of 8 keys, and rows that are parts of a line of a multiple of 8, which
    # torch takes as they are.
    [((8,) * 3, (8,) * 3), ((10,) * 3, (8,) * 3), ((10, 7, 4), (8, 8, 2))],
    ids=["8-8", "10-8", "padded"],
)
@each_encoding
@torch.no_grad()
def test_masks_are_aligned(
    encoding: str,
    sharing: str | None,
    source: tuple[int, ...],
    target: tuple[int, ...],
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """torch copies a mask whose strides are not, but does not look at where it begins."""
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
    for mask in found:
        assert mask.stride(-1) == 1
        taken = all(stride % ALIGNED == 0 for stride in mask.stride()[:-1])
        assert not taken or mask.data_ptr() % (ALIGNED * mask.element_size()) == 0
