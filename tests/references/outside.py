"""Hugging Face's ``transformers``, and an attention layer of ours with the weights of theirs.

``requirements/dev.txt`` pins the version. On Python 3.10, where the tests run against stock
fairseq, it is not installed and these tests are skipped; anywhere else its absence is a failure.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.layers.multihead import AttentionCall, PositionalAttention
from diet_mt.positions import DECODER, AttentionPositions

if sys.version_info < (3, 11):
    pytest.importorskip("transformers", reason="on Python 3.10 transformers is not installed")

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


class Lazy:
    """A module that is imported by the first test that uses it: these take seconds."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


transformers = Lazy("transformers")


def modeling(name: str) -> Lazy:
    return Lazy(f"transformers.models.{name}.modeling_{name}")


def like_theirs(
    positions: AttentionPositions, x: Tensor, projections: dict[str, nn.Module], *, scale: float
) -> tuple[Tensor, Tensor]:
    """Self-attention over ``x`` (B, T, E): the output (B, T, E) and the weights (B, H, T, T).

    ``projections``: their ``q_proj``, ``k_proj``, ``v_proj``, ``out_proj``; ours adds 0 where they
    have no bias, and has the identity where they have no ``out_proj``.
    """
    shape, length = positions.shape, x.size(1)
    attention = PositionalAttention(shape.embed_dim, shape.heads, scale=scale, self_attention=True)
    own = attention.state_dict()
    with torch.no_grad():
        for name, value in own.items():
            which, part = name.split(".")
            known = projections[which].state_dict() if which in projections else {}
            identity = name == "out_proj.weight" and not known
            default = torch.eye(len(value)) if identity else torch.zeros_like(value)
            value.copy_(known.get(part, default))
    positions.attention = (attention.to(x.dtype),)
    call = AttentionCall(
        positions.for_layers(range(length), range(length))[0],
        causal=shape.kind == DECODER,
        need_weights=True,
    )
    out, weights = attention(x.transpose(0, 1), None, call)
    assert weights is not None
    return out.transpose(0, 1), weights


def causal_mask(length: int, dtype: torch.dtype) -> Tensor:
    """(1, 1, T, T), the lowest number of ``dtype`` where the key comes after the query."""
    lowest = torch.full((length, length), torch.finfo(dtype).min, dtype=dtype)
    return lowest.triu(1)[None, None]
