"""Encoders by themselves, for measurements."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch
from fairseq.data import Dictionary

from ..layers.encoder import DietEncoder
from ..models._options import NestedConfig, nested_config
from ..models.diet_transformer import DietTransformerModel


def make_encoder(
    encoding: str, sizes: dict[str, int], *, positions: int, vocabulary: int, **options: Any
) -> DietEncoder:
    """An encoder with random weights, the same at every call.

    ``sizes``: ``layers``, ``embed_dim``, ``ffn_embed_dim``, ``attention_heads``. ``positions``: the
    longest sentence. ``options``: further ones of the model, by their fields.
    """
    cfg = nested_config(
        Namespace(
            **{f"encoder_{name}": size for name, size in sizes.items()},
            **{f"decoder_{name}": size for name, size in sizes.items()},  # checked, never built
            position_encoding=encoding,
            max_source_positions=positions,
            **options,
        ),
        NestedConfig,
    )
    words = Dictionary()
    for number in range(vocabulary - len(words)):
        words.add_symbol(f"word{number}")
    torch.manual_seed(1)
    embedding = DietTransformerModel.build_embedding(cfg, words, sizes["embed_dim"])
    return DietEncoder(cfg, words, embedding)
