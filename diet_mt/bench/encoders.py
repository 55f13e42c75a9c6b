"""Encoders by themselves, for measurements."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY

from ..layers.encoder import DietEncoder
from ..models._architectures import architecture_name
from ..models._options import NestedConfig, nested_config
from ..models.diet_roberta import DietRobertaModel
from ..models.diet_transformer import DietTransformerModel

# Shaw et al. in Chen et al. 2021: vectors on keys and values. Unclipped over 512 tokens would be
# 511; the parameters that table 6 prints come out with 1,023.
SHAW = {"position_clip": 1023, "position_values": True}


class _Task:
    """What a model asks of a task: a dictionary of so many words."""

    def __init__(self, words: int) -> None:
        self.source_dictionary = Dictionary()
        for number in range(words - len(self.source_dictionary)):
            self.source_dictionary.add_symbol(str(number))


def make_bert(encoding: str, *, segments: str, vocabulary: int, **options: Any) -> DietRobertaModel:
    """``roberta_<encoding>_base`` with random weights; other sizes where ``options`` say so."""
    given = Namespace(segment_encoding=segments, **options)
    ARCH_CONFIG_REGISTRY[f"roberta_{architecture_name(encoding, 'base')}"](given)
    return DietRobertaModel.build_model(given, _Task(vocabulary))


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
    words = _Task(vocabulary).source_dictionary
    torch.manual_seed(1)
    embedding = DietTransformerModel.build_embedding(cfg, words, sizes["embed_dim"])
    return DietEncoder(cfg, words, embedding)
