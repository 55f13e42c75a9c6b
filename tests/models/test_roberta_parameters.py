"""Sizes of encoder-only models. The paper's table 6: ``tests/bench``."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
)
from fairseq.models.roberta import RobertaModel

from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.positions import NAMES

from ..toy import ToyTask, each_encoding, position_parameters
from ..toy_sentences import build, each_sentence_encoder, options, segment_parameters


def filled(arch: str, **given: Any) -> Namespace:
    args = Namespace(**given)
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


SIZES = {"tiny": (4, 128, 512, 4), "small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}
COLUMNS = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")


@pytest.mark.parametrize("size", SIZES)
def test_every_encoding_has_every_size(size: str) -> None:
    for encoding in NAMES:
        arch = f"roberta_{encoding.replace('-', '_')}_{size}"
        assert ARCH_MODEL_REGISTRY[arch] is DietRobertaModel
        assert ARCH_MODEL_NAME_REGISTRY[arch] == "diet_roberta"
        args = filled(arch)
        assert tuple(getattr(args, f"encoder_{name}") for name in COLUMNS) == SIZES[size], arch
        assert args.position_encoding == encoding
        # Section 4.1: DIET-ABS of rank 128; the layers share it, as its own default says.
        assert getattr(args, "position_rank", None) == (128 if encoding == "diet-abs" else None)


def test_no_other_architecture_is_registered() -> None:
    registered = {arch for arch, model in ARCH_MODEL_REGISTRY.items() if model is DietRobertaModel}
    named = {f"roberta_{name.replace('-', '_')}_{size}" for name in NAMES for size in SIZES}
    assert registered == named | {"diet_roberta"}


def test_what_the_user_gives_wins() -> None:
    args = filled("roberta_diet_abs_tiny", encoder_layers=3, position_rank=7)
    assert (args.encoder_layers, args.position_rank) == (3, 7)
    # Another encoding than the architecture's does not get its options.
    other = filled("roberta_diet_abs_tiny", position_encoding="diet-rel")
    assert (other.position_encoding, getattr(other, "position_rank", None)) == ("diet-rel", None)


@each_sentence_encoder
def test_everything_else_is_fairseqs_roberta(
    encoding: str, sharing: str | None, segments: str
) -> None:
    """The same names and shapes as in fairseq's own model with the same options."""
    model = build(encoding, sharing, segments)
    stock = RobertaModel.build_model(options("none", None, "none", max_positions=11), ToyTask())
    fused = ("in_proj", "out_proj", "fc1", "fc2")  # a second copy in stock fairseq 0.12.2
    theirs = {
        name: parameter.shape
        for name, parameter in stock.named_parameters()
        if name.split(".")[-1].rsplit("_", 1)[0] not in fused and "embed_positions" not in name
    }
    ours = {name: parameter.shape for name, parameter in model.named_parameters()}
    for name in position_parameters(model) | segment_parameters(model):
        del ours[name]
    if encoding == "concat":  # words are narrower by an eighth, and so is what predicts them
        narrow = {name for name in ours if ours[name] != theirs[name]}
        assert all(name.endswith("embed_tokens.weight") or ".lm_head." in name for name in narrow)
        for name in narrow:
            assert ours[name] == torch.Size(
                [{12: 11}.get(n, n) for n in theirs[name]]
                if not name.endswith("dense.weight")
                else [11, 12]
            )
    else:
        assert ours == theirs


@each_encoding
def test_words_are_drawn_as_berts(encoding: str, sharing: str | None) -> None:
    """Normal with 0.02, as learned positions at the input are; linear layers, too."""
    wide = {"encoder_embed_dim": 96, "encoder_attention_heads": 3, "max_source_positions": 64}
    model = build(encoding, sharing, tables=None, **wide)
    stack = model.encoder.sentence_encoder
    # Thousands of draws each: one deviation of the estimate is about 1 %.
    drawn = [stack.embed_tokens.weight, stack.layers[0].fc1.weight]
    drawn += [] if stack.embed_positions is None else list(stack.embed_positions.parameters())
    for parameter in drawn:
        assert parameter.std().item() == pytest.approx(0.02, rel=0.1)
