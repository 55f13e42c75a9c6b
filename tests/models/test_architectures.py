"""Named architectures: the presets of the literature, and that the user's own flags win."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_legacy import (
    base_architecture,
    transformer_vaswani_wmt_en_de_big,
)

from diet_mt.models._architectures import SIZES, architecture_name, preset
from diet_mt.models._options import NestedConfig, nested_config
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import NAMES

# Layers, width, feed-forward width, heads, dropout: of base and big Vaswani et al. 2017, table 3.
TABLE = {
    "tiny": (4, 128, 256, 4, 0.1),
    "base": (6, 512, 2048, 8, 0.1),
    "big": (6, 1024, 4096, 16, 0.3),
}
COLUMNS = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")


def filled(arch: str, **given: Any) -> Any:
    """The nested configuration of ``arch`` where only ``given`` was on the command line."""
    args = Namespace(**given)
    ARCH_CONFIG_REGISTRY[arch](args)
    return nested_config(args, NestedConfig)


@pytest.mark.parametrize("size", TABLE)
def test_sizes(size: str) -> None:
    for encoding in NAMES:
        arch = f"{encoding.replace('-', '_')}_{size}"
        assert ARCH_MODEL_REGISTRY[arch] is DietTransformerModel
        assert ARCH_MODEL_NAME_REGISTRY[arch] == "diet_transformer"
        cfg = filled(arch)
        assert cfg.position_encoding == encoding
        for stack in (cfg.encoder, cfg.decoder):
            assert tuple(getattr(stack, name) for name in COLUMNS) == TABLE[size][:4], arch
        assert cfg.dropout == TABLE[size][4]
        assert (cfg.decoder.input_dim, cfg.decoder.output_dim) == (TABLE[size][1],) * 2


def test_no_other_architecture_is_registered() -> None:
    registered = {
        arch for arch, model in ARCH_MODEL_REGISTRY.items() if model is DietTransformerModel
    }
    named = {architecture_name(encoding, size) for encoding in NAMES for size in TABLE}
    assert registered == named | {"diet_transformer"}
    assert SIZES.keys() == TABLE.keys()


@pytest.mark.parametrize(
    ("size", "theirs"), [("base", base_architecture), ("big", transformer_vaswani_wmt_en_de_big)]
)
def test_base_and_big_are_those_of_fairseq(size: str, theirs: Any) -> None:
    """fairseq's ``transformer`` and ``transformer_vaswani_wmt_en_de_big``."""
    args = Namespace()
    theirs(args)
    expected, found = TransformerConfig.from_namespace(args), filled(f"sinusoidal_{size}")
    for name in ("dropout", "attention_dropout", "activation_dropout", "activation_fn"):
        assert getattr(found, name) == getattr(expected, name), name
    for stack in ("encoder", "decoder"):
        for name in (*COLUMNS, "normalize_before"):
            mine, other = getattr(found, stack), getattr(expected, stack)
            assert getattr(mine, name) == getattr(other, name), name


@pytest.mark.parametrize("size", TABLE)
def test_what_the_user_gives_wins(size: str) -> None:
    cfg = filled(f"diet_rel_{size}", encoder_layers=3, dropout=0.2, decoder_ffn_embed_dim=64)
    assert (cfg.encoder.layers, cfg.decoder.layers) == (3, TABLE[size][0])
    assert (cfg.dropout, cfg.decoder.ffn_embed_dim) == (0.2, 64)
    assert filled(f"diet_rel_{size}", position_encoding="none").position_encoding == "none"


def test_filling_in_twice_changes_nothing() -> None:
    """fairseq does, after parsing and again when the model is built."""
    args = Namespace(encoder_layers=3)
    ARCH_CONFIG_REGISTRY["diet_abs_big"](args)
    once = vars(args).copy()
    ARCH_CONFIG_REGISTRY["diet_abs_big"](args)
    assert vars(args) == once
    assert once.items() >= {**preset("diet-abs", "big"), "encoder_layers": 3}.items()
