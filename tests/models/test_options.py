"""Options: from fairseq's own command line parser to the built model."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models.transformer import TransformerModel
from omegaconf import DictConfig

from diet_mt.errors import UserError
from diet_mt.models._options import (
    DietTransformerConfig,
    NestedConfig,
    PositionOptions,
    nested_config,
)
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import NAMES

from ..toy import ToyTask, build, options, position_parameters

# hydra (fairseq-fixed) says so for every configuration of fairseq.
pytestmark = pytest.mark.filterwarnings("ignore:\\s*.config. is validated against:UserWarning")

ARCH = "diet_abs_tiny"  # 4 layers, width 128, 4 heads of 32


def parse(*flags: str, arch: str = ARCH) -> DictConfig:
    """The model part of the configuration that ``fairseq-train --arch ARCH FLAGS`` makes."""
    parser = fairseq_options.get_training_parser()
    args = fairseq_options.parse_args_and_arch(
        parser, ["no-data", "--user-dir", "no-folder", "--arch", arch, *flags]
    )
    model: DictConfig = convert_namespace_to_omegaconf(args).model
    return model


@pytest.fixture(autouse=True)
def _user_dir_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is there already; fairseq would import it a second time."""
    monkeypatch.setattr("fairseq.utils.import_user_module", lambda args: None)


def build_from(*flags: str, arch: str = ARCH) -> DietTransformerModel:
    short = "--max-source-positions", "20", "--max-target-positions", "15"
    return DietTransformerModel.build_model(parse(*short, *flags, arch=arch), ToyTask())


def total(model: DietTransformerModel) -> int:
    return sum(parameter.numel() for parameter in position_parameters(model).values())


# For each option of ours: a value on the command line, and what it changes in the model.
EFFECTS: dict[str, tuple[str, Callable[[DietTransformerModel], object], object]] = {
    "position_encoding": (
        "learned",
        lambda model: model.encoder.embed_positions is not None,
        True,
    ),
    "position_sharing": (
        "head-wise",
        lambda model: [len(table.query) for table in model.encoder.self_attn_positions.tables()],
        [1, 1, 1, 1],
    ),
    "position_rank": ("5", total, 2 * 5 * 4 * (20 + 15 + (20 + 15) / 2)),
    "attention_scale": (
        "model",
        lambda model: model.decoder.layers[0].encoder_attn.scaling,
        128**-0.5,
    ),
}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(PositionOptions)])
def test_every_option_of_ours_changes_the_built_model(name: str) -> None:
    if name == "_name":
        return
    value, effect, expected = EFFECTS[name]
    flags = f"--{name.replace('_', '-')}", value
    changed = build_from(*flags)
    assert effect(changed) == expected
    assert effect(build_from()) != expected
    # And the checkpoint knows it.
    if name != "position_rank":  # the rank shows in the shapes
        assert changed.signature != build_from().signature


def test_options_left_out_are_the_defaults() -> None:
    model = build_from(arch="diet_transformer")
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
    "position_encoding": "diet-abs",
    "position_sharing": "head-wise",
    "position_rank": 9,
    "attention_scale": "model",
}
REFUSED: dict[str, Any] = {
    "no_token_positional_embeddings": True,
    "encoder_learned_pos": True,
    "decoder_learned_pos": True,
    "cross_self_attention": True,
    "encoder_xformers_att_config": "x",
    "decoder_xformers_att_config": "x",
    "base_layers": 1,
}
# The width of the output goes with no embedding shared with it, and has a test of its own below.
NOT_ASKED = {"_name", "decoder_output_dim", *REFUSED}


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
    cfg = nested_config(parsed)
    for name, value in values.items():
        assert _nested(cfg, name) == value, name
        assert defaults[name] != value, name


def _nested(cfg: NestedConfig, name: str) -> Any:
    for part in ("encoder", "decoder", "quant_noise"):
        if name.startswith(f"{part}_"):
            return getattr(getattr(cfg, part), name[len(part) + 1 :])
    return getattr(cfg, name)


def test_the_decoder_has_its_own_width_inside_unless_told_otherwise() -> None:
    cfg = nested_config(options("none"))
    assert (cfg.decoder.input_dim, cfg.decoder.output_dim) == (18, 18)
    model = build("diet-rel", decoder_output_dim=14)
    assert model.decoder.project_out_dim.weight.shape == (14, 18)
    assert model.decoder.output_projection.weight.shape == (44, 14)


def test_building_a_model_leaves_fairseqs_own_defaults_alone() -> None:
    """fairseq-fixed keeps its nested defaults as classes: writing to one would change them all."""
    build("diet-rel", decoder_input_dim=10)
    cfg = nested_config(options("none"))
    assert cfg.decoder.input_dim == 18
    fresh = TransformerModel.build_model(options("none"), ToyTask()).cfg
    assert not fresh.no_token_positional_embeddings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"position_encoding": "diet_rel"},
            "--position-encoding diet_rel: unknown; choose from " + ", ".join(sorted(NAMES)),
        ),
        ({"position_encoding": "diet-abs", "position_rank": 0}, "--position-rank 0: must be at"),
        ({"position_encoding": "diet-abs", "position_rank": -1}, "--position-rank -1: must be at"),
        ({"position_rank": 8}, "--position-rank 8: diet-rel has no rank"),
        ({"position_sharing": "heads"}, "--position-sharing heads: choose from none, head-wise"),
        (
            {"position_encoding": "learned", "position_sharing": "head-wise"},
            "--position-sharing head-wise: learned has no parameters per head",
        ),
        ({"attention_scale": "key"}, "--attention-scale key: choose from head, model"),
        (
            {"encoder_embed_dim": 14},
            "--encoder-embed-dim 14 is not a multiple of --encoder-attention-heads 3",
        ),
        (
            {"decoder_attention_heads": 5},
            "--decoder-embed-dim 18 is not a multiple of --decoder-attention-heads 5",
        ),
        (
            {"position_encoding": "sinusoidal", "encoder_embed_dim": 15},
            "an even --encoder-embed-dim and --decoder-embed-dim, not 15",
        ),
        (
            {"decoder_output_dim": 14, "share_decoder_input_output_embed": True},
            "--decoder-output-dim 14: embeddings tied to the output have --decoder-embed-dim 18",
        ),
        ({"encoder_attention_heads": 0}, "--encoder-attention-heads 0: must be at least 1"),
        ({"decoder_layers": 0}, "--decoder-layers 0: must be at least 1"),
        ({"encoder_embed_dim": -12}, "--encoder-embed-dim -12: must be at least 1"),
        ({"max_target_positions": 0}, "--max-target-positions 0: must be at least 1"),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if type(value) is dict else "",
)
def test_options_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        build(changes.pop("position_encoding", "diet-rel"), **changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", REFUSED)
def test_options_of_fairseq_that_lead_past_positions_are_refused(name: str) -> None:
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(UserError, match=f"^{flag}: .*(use --position-encoding .*|leave it out)$"):
        build("none", **{name: REFUSED[name]})


def test_all_problems_are_reported_together() -> None:
    wrong: dict[str, Any] = {
        "encoder_embed_dim": 14,
        "decoder_attention_heads": 5,
        "attention_scale": "key",
        "position_rank": -3,
        "position_sharing": "heads",
        "encoder_learned_pos": True,
    }
    with pytest.raises(UserError) as error:
        build("diet-abs", wrong.pop("position_sharing"), **wrong)
    text = str(error.value)
    for name in wrong:
        assert f"--{name.replace('_', '-')}" in text
    assert "--position-sharing heads" in text
    assert "\n" not in text
