"""Encoders by themselves, for measurements: random weights, the same at every call."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY

from ..layers.encoder import DietEncoder
from ..models._architectures import architecture_name
from ..models.diet_roberta import DietRobertaModel
from ..models.diet_transformer import DietTransformerModel

# Shaw et al. in Chen et al. 2021: vectors on keys and values. Unclipped over 512 tokens would be
# 511; the parameters that table 6 prints come out with 1,023.
SHAW = {"position_clip": 1023, "position_values": True}


def make_roberta(
    encoding: str, *, segments: str, vocabulary: int, **options: Any
) -> DietRobertaModel:
    """``roberta_<encoding>_base``; other sizes where ``options`` say so."""
    name = f"roberta_{architecture_name(encoding, 'base')}"
    return _model(DietRobertaModel, name, vocabulary, segment_encoding=segments, **options)


def make_encoder(encoding: str, *, vocabulary: int, **options: Any) -> DietEncoder:
    """That of ``<encoding>_tiny``; other sizes where ``options`` say so."""
    name = architecture_name(encoding, "tiny")
    encoder: DietEncoder = _model(DietTransformerModel, name, vocabulary, **options).encoder
    return encoder


def _model(kind: Any, architecture: str, vocabulary: int, **options: Any) -> Any:
    """``vocabulary``: words of the dictionary, which is all that a model asks of its task."""
    words = Dictionary()
    for number in range(vocabulary - len(words)):
        words.add_symbol(str(number))
    given = Namespace(**options)
    ARCH_CONFIG_REGISTRY[architecture](given)
    torch.manual_seed(1)
    return kind.build_model(given, Namespace(source_dictionary=words, target_dictionary=words))
