"""Options: from fairseq's own command line parser to the built model."""

from __future__ import annotations

import argparse
import dataclasses
import operator
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer import TransformerModel
from omegaconf import DictConfig

from diet_mt.models._options import (
    DietTransformerConfig,
    NestedConfig,
    TranslationOptions,
    nested_config,
)
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions.rotary import BASE

from ..toy import ToyTask, build, options, position_parameters
from .test_refused_options import REFUSED

# hydra (fairseq-fixed) says so for every configuration of fairseq.
pytestmark = pytest.mark.filterwarnings("ignore:\\s*.config. is validated against:UserWarning")

ARCH = "diet_abs_tiny"  # 4 layers, width 128, 4 heads of 32


def whole_configuration(*flags: str, arch: str = ARCH) -> DictConfig:
    """The configuration that ``fairseq-train --arch ARCH FLAGS`` makes."""
    parser = fairseq_options.get_training_parser()
    args = fairseq_options.parse_args_and_arch(
        parser, ["no-data", "--user-dir", "no-folder", "--arch", arch, *flags]
    )
    return convert_namespace_to_omegaconf(args)


def parse(*flags: str, arch: str = ARCH) -> DictConfig:
    """The model part of it."""
    return whole_configuration(*flags, arch=arch).model


@pytest.fixture(autouse=True)
def _user_dir_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is there already; fairseq would import it a second time."""
    monkeypatch.setattr("fairseq.utils.import_user_module", lambda args: None)


def test_the_help_says_who_takes_an_option_and_the_default_there() -> None:
    parser = argparse.ArgumentParser()
    DietTransformerModel.add_args(parser)
    text = " ".join(parser.format_help().split())
    for option, encodings in (
        ("--position-clip POSITION_CLIP", "(deberta: 512, shaw: 16)"),
        ("--position-kernel POSITION_KERNEL", "log, power (kerple: log)"),
        ("--position-values", "(shaw)"),
    ):
        assert re.search(rf"{option} [^()]*{re.escape(encodings)}", text)


def parse_own(model: Any, *flags: str, arch: str) -> argparse.Namespace:
    """The model's own options alone: all of fairseq's take most of a second."""
    parser = argparse.ArgumentParser(allow_abbrev=False, argument_default=argparse.SUPPRESS)
    model.add_args(parser)
    args = parser.parse_args(flags)
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


def build_from(*flags: str, arch: str = ARCH) -> DietTransformerModel:
    short = "--max-source-positions", "20", "--max-target-positions", "15"
    args = parse_own(DietTransformerModel, *short, *flags, arch=arch)
    return DietTransformerModel.build_model(args, ToyTask())


@cache
def by_default(arch: str) -> DietTransformerModel:
    """Read only."""
    return build_from(arch=arch)


def total(model: DietTransformerModel) -> int:
    return sum(parameter.numel() for parameter in position_parameters(model).values())


def at_distance(model: DietTransformerModel, distance: int) -> bool:
    """Whether the encoder's bias tells ``distance`` from the one before."""
    first = model.encoder.self_attn_positions.for_layers(range(distance, distance + 1), range(2))[0]
    bias = first.bias  # distances d and d - 1
    return not torch.equal(bias[..., 0], bias[..., 1])


def slowest_pair(model: DietTransformerModel) -> object:
    """By how much the last of 16 pairs turns."""
    rotary = model.encoder.self_attn_positions.encoding
    return pytest.approx(rotary.frequencies(32)[-1].item(), rel=1e-12)


# For each option of ours: an encoding that takes it, the flags, and what they change in the model.
# Of the tiny sizes: 4 layers, 4 heads, head size 32.
Effect = tuple[str, tuple[str, ...], Callable[[DietTransformerModel], object], object]
EFFECTS: dict[str, Effect] = {
    "position_encoding": (
        "diet_abs",
        ("--position-encoding", "learned"),
        lambda model: model.encoder.embed_positions is not None,
        True,
    ),
    "position_in": (
        "diet_abs",
        ("--position-in", "cross,decoder"),
        lambda model: model.encoder.self_attn_positions,
        None,
    ),
    "position_input": (
        "diet_abs",
        ("--position-input", "learned"),
        lambda model: model.encoder.embed_positions is not None,
        True,
    ),
    "position_randomized": (
        "diet_abs",
        ("--position-randomized", "30"),
        lambda model: getattr(model.encoder.token_positions, "count", None),
        30,
    ),
    "compile": ("diet_abs", ("--compile",), lambda model: model.cfg.compile, True),
    "beyond_table": (
        "diet_abs",
        ("--beyond-table", "clip"),
        lambda model: model.encoder.attention_shape.extrapolation,
        "clip",
    ),
    "position_sharing": (
        "diet_abs",
        ("--position-sharing", "head-wise"),
        lambda model: [len(table.query) for table in model.encoder.self_attn_positions.tables()],
        [1, 1, 1, 1],
    ),
    "position_rank": (
        "diet_abs",
        ("--position-rank", "5"),
        total,
        2 * 5 * 4 * (20 + 15 + (20 + 15) / 2),
    ),
    # Three kinds of attention, four layers each.
    "position_clip": ("shaw", ("--position-clip", "3"), total, 3 * 4 * (2 * 3 + 1) * 32),
    "position_values": ("shaw", ("--position-values",), total, 3 * 4 * 2 * (2 * 16 + 1) * 32),
    "position_buckets": ("t5", ("--position-buckets", "20"), total, 3 * 4 * 20),
    # Of 16 buckets for a direction 8 are for one distance each, then edges at 8 (18/8)^(k/8), the
    # last of them 16.3. By default they are at 8 * 16^(k/8): 11.3, 16, ..., 90.5.
    "position_max_distance": (
        "t5",
        ("--position-max-distance", "18"),
        lambda model: [at_distance(model, distance) for distance in (9, 17, 18, 91)],
        [True, True, False, False],
    ),
    "linformer_k": (
        "linformer",
        ("--linformer-k", "7"),
        total,
        4 * 2 * 20 * 7 + (20 + 15) * 128,
    ),
    "position_kernel": (
        "kerple",
        ("--position-kernel", "power"),
        lambda model: model.encoder.self_attn_positions.kernel,
        "power",
    ),
    "position_shift": (
        "shape",
        ("--position-shift", "7"),
        lambda model: len(model.encoder.embed_positions.table()),
        20 + 7,
    ),
    **{
        f"position_{name}": (
            "cape",
            (f"--position-{name.replace('_', '-')}", "1.5"),
            operator.attrgetter(f"decoder.embed_positions.{name}"),
            1.5,
        )
        for name in ("global_shift", "local_shift", "global_scale")
    },
    "position_scaling": (
        "rotary",
        ("--position-scaling", "linear", "--position-scaling-factor", "4"),
        slowest_pair,
        BASE ** (-15 / 16) / 4,
    ),
    "position_scaling_factor": (
        "rotary",
        ("--position-scaling-factor", "3", "--position-scaling", "linear"),
        slowest_pair,
        BASE ** (-15 / 16) / 3,
    ),
    # Of 12 tokens the pairs 0 and 1 of 16 turn once or more.
    "position_trained_length": (
        "rotary",
        (
            *("--position-trained-length", "12"),
            *("--position-scaling", "yarn", "--position-scaling-factor", "8"),
        ),
        slowest_pair,
        BASE ** (-15 / 16) / 8,
    ),
    "attention_scale": (
        "diet_abs",
        ("--attention-scale", "model"),
        lambda model: model.decoder.layers[0].encoder_attn.scaling,
        128**-0.5,
    ),
}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(TranslationOptions)])
def test_every_option_of_ours_changes_the_built_model(name: str) -> None:
    if name == "_name":
        return
    encoding, flags, effect, expected = EFFECTS[name]
    assert flags[0] == f"--{name.replace('_', '-')}"
    changed, plain = build_from(*flags, arch=f"{encoding}_tiny"), by_default(f"{encoding}_tiny")
    assert effect(changed) == expected
    assert effect(plain) != expected
    # And the checkpoint has it, but for options that change no weights.
    assert (changed.signature == plain.signature) == (name in ("beyond_table", "compile"))


def test_the_rank_of_concat_and_of_mixed_keys() -> None:
    model = build_from("--position-rank", "24", arch="concat_tiny")
    assert total(model) == (20 + 15) * 24
    assert model.encoder.embed_tokens.weight.shape == (44, 128 - 24)
    model = build_from("--position-rank", "5", "--linformer-k", "6", arch="diet_abs_lin_tiny")
    mixed = 4 * 2 * 20 * 6 + 4 * (20 + 6) * 5
    assert total(model) == mixed + 4 * 5 * (2 * 15 + 20 + 15)


def test_options_left_out_are_the_defaults() -> None:
    model = DietTransformerModel.build_model(parse(arch="diet_transformer"), ToyTask())
    assert model.signature == "diet-rel sharing=none scale=head"
    assert (len(model.encoder.layers), model.cfg.encoder.embed_dim) == (6, 512)


def test_every_option_of_fairseqs_transformer_is_there() -> None:
    """Under fairseq's own names, but for those that its dataclass does not have."""
    ours, theirs = (_flags(model) for model in (DietTransformerModel, TransformerModel))
    assert theirs - ours == set()
    assert ours - theirs >= {"--position-encoding", "--position-sharing", "--position-rank"}


def _flags(model: Any) -> set[str]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    model.add_args(parser)
    return {flag for action in parser._actions for flag in action.option_strings}


# Values unlike the defaults and unlike one another, where the type alone does not give one.
GIVEN: dict[str, Any] = {
    "activation_fn": "gelu",
    "encoder_embed_dim": 96,
    "encoder_attention_heads": 3,
    "decoder_embed_dim": 80,
    "decoder_attention_heads": 2,
    "decoder_input_dim": 72,
    "encoder_layers_to_keep": "0,2",
    "decoder_layers_to_keep": "1",
    "adaptive_softmax_cutoff": "10,20",
    "position_encoding": "diet-abs-lin",
    "position_in": "encoder",
    "position_input": "sinusoidal",
    "position_randomized": 5000,
    "position_sharing": "head-wise",
    "position_rank": 9,
    "linformer_k": 13,
    "attention_scale": "model",
}
# The width of the output goes with no embedding shared with it, and has a test of its own below; no
# encoding takes all options, and each has its test above.
OF_OTHERS = {
    "beyond_table",
    "compile",
    "position_clip",
    "position_values",
    "position_buckets",
    "position_max_distance",
} | {
    f"position_{name}"
    for name in (
        "kernel",
        "scaling",
        "scaling_factor",
        "trained_length",
        "shift",
        "global_shift",
        "local_shift",
        "global_scale",
    )
}
NOT_ASKED = {"_name", "decoder_output_dim", *OF_OTHERS, *REFUSED}


def some_value(number: int, field: Any) -> Any:
    """A value that ``field`` does not have by default and no other field has."""
    if field.name in GIVEN:
        return GIVEN[field.name]
    if isinstance(field.default, bool):
        return True
    if isinstance(field.default, float) or field.type is float:
        return 0.25 + number / 1024
    return f"path-{number}" if field.default is None else 7 + number


def test_every_flag_arrives_in_the_configuration_that_builds_the_model() -> None:
    """All at once and all different, so that none can be taken for another."""
    fields = [f for f in dataclasses.fields(DietTransformerConfig) if f.name not in NOT_ASKED]
    values = {field.name: some_value(number, field) for number, field in enumerate(fields)}
    flags: list[str] = []
    for field in fields:
        flags.append(f"--{field.name.replace('_', '-')}")
        if values[field.name] is not True:
            flags.append(str(values[field.name]))
    assert len(fields) >= 50  # stock fairseq: 50, fairseq-fixed: 51
    defaults = {field.name: field.default for field in fields}
    parsed = parse(*flags)
    cfg = nested_config(parsed, NestedConfig)
    for name, value in values.items():
        assert _nested(cfg, name) == value, name
        assert defaults[name] != value, name


def _nested(cfg: NestedConfig, name: str) -> Any:
    for part in ("encoder", "decoder", "quant_noise"):
        if name.startswith(f"{part}_"):
            return getattr(getattr(cfg, part), name[len(part) + 1 :])
    return getattr(cfg, name)


def test_the_decoder_has_its_own_width_inside_unless_told_otherwise() -> None:
    cfg = nested_config(options("none"), NestedConfig)
    assert (cfg.decoder.input_dim, cfg.decoder.output_dim) == (16, 16)
    model = build("diet-rel", decoder_output_dim=14)
    assert model.decoder.project_out_dim.weight.shape == (14, 16)
    assert model.decoder.output_projection.weight.shape == (44, 14)


def test_building_a_model_leaves_fairseqs_own_defaults_alone() -> None:
    """fairseq-fixed keeps its nested defaults as classes: writing to one would change them all."""
    build("diet-rel", decoder_input_dim=10)
    cfg = nested_config(options("none"), NestedConfig)
    assert cfg.decoder.input_dim == 16
    fresh = TransformerModel.build_model(options("none"), ToyTask()).cfg
    assert not fresh.no_token_positional_embeddings
