"""Options and architectures: from fairseq's own command line parser to the built model."""

from __future__ import annotations

import argparse
import dataclasses
import re
from argparse import Namespace
from functools import cache
from typing import Any

import pytest
import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, build_model
from fairseq.models import ARCH_MODEL_REGISTRY as ARCHITECTURES
from fairseq.models.roberta.model import RobertaModel
from fairseq.models.roberta.model import base_architecture as roberta_base
from fairseq.models.transformer import TransformerConfig, TransformerModel
from fairseq.models.transformer.transformer_legacy import (
    base_architecture,
    transformer_vaswani_wmt_en_de_big,
)
from omegaconf import DictConfig, OmegaConf

from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.models.options import (
    DietTransformerConfig,
    NestedConfig,
    TranslationOptions,
    nested_config,
)
from diet_mt.models.roberta_options import DietRobertaConfig, plain_options
from diet_mt.positions import NAMES
from diet_mt.positions.position_ids import BASE
from diet_mt.system.errors import UserError

from .. import toy_sentences
from ..toy import ToyTask, build, options, position_parameters

# hydra (fairseq-fixed) says so for every configuration of fairseq.
pytestmark = pytest.mark.filterwarnings("ignore:\\s*.config. is validated against:UserWarning")


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# Architectures

COLUMNS = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
# By model: the prefix of its architectures, and their sizes.
SIZES: dict[Any, tuple[str, dict[str, tuple[int, ...]]]] = {
    # base and big: Vaswani et al. 2017, table 3.
    DietTransformerModel: (
        "",
        {"tiny": (4, 128, 256, 4), "base": (6, 512, 2048, 8), "big": (6, 1024, 4096, 16)},
    ),
    # base: Devlin et al. 2018; small: Turc et al. 2019.
    DietRobertaModel: (
        "roberta_",
        {"tiny": (4, 128, 512, 4), "small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)},
    ),
}


def preset(arch: str, **given: Any) -> Namespace:
    """The options of ``arch`` where only ``given`` was on the command line."""
    args = Namespace(**given)
    for _ in range(2):  # fairseq does so after parsing, and again when the model is built
        ARCH_CONFIG_REGISTRY[arch](args)
    return args


@pytest.mark.parametrize("model", SIZES)
def test_every_encoding_has_every_size(model: Any) -> None:
    prefix, sizes = SIZES[model]
    named = set()
    for encoding in NAMES:
        for size, expected in sizes.items():
            arch = f"{prefix}{encoding.replace('-', '_')}_{size}"
            named.add(arch)
            args = preset(arch)
            assert args.position_encoding == encoding
            for side in ("encoder", "decoder")[: 2 - bool(prefix)]:
                assert tuple(getattr(args, f"{side}_{name}") for name in COLUMNS) == expected, arch
            assert getattr(args, "dropout", 0.1) == (0.3 if size == "big" else 0.1)
            # Chen et al. 2021, section 4.1: DIET-ABS of rank 128 in BERT.
            rank = 128 if prefix and encoding == "diet-abs" else None
            assert getattr(args, "position_rank", None) == rank
    own = ARCH_MODEL_NAME_REGISTRY[next(iter(named))]
    assert {name for name, kind in ARCHITECTURES.items() if kind is model} == named | {own}


@pytest.mark.parametrize(
    ("size", "theirs"), [("base", base_architecture), ("big", transformer_vaswani_wmt_en_de_big)]
)
def test_base_and_big_are_those_of_fairseq(size: str, theirs: Any) -> None:
    args = Namespace()
    theirs(args)
    expected = TransformerConfig.from_namespace(args)
    cfg = nested_config(preset(f"sinusoidal_{size}"), NestedConfig)
    for name in ("dropout", "attention_dropout", "activation_dropout", "activation_fn"):
        assert getattr(cfg, name) == getattr(expected, name), name
    for stack in ("encoder", "decoder"):
        for name in (*COLUMNS, "normalize_before"):
            assert getattr(getattr(cfg, stack), name) == getattr(getattr(expected, stack), name)


def test_options_of_the_user_win_over_the_architecture() -> None:
    args = preset("diet_rel_big", encoder_layers=3, dropout=0.2, decoder_ffn_embed_dim=64)
    assert (args.encoder_layers, args.decoder_layers, args.dropout) == (3, 6, 0.2)
    args = preset("roberta_diet_abs_tiny", encoder_layers=3, position_rank=7)
    assert (args.encoder_layers, args.position_rank) == (3, 7)
    # Another encoding than the architecture's does not get its options.
    other = preset("roberta_diet_abs_tiny", position_encoding="diet-rel")
    assert (other.position_encoding, getattr(other, "position_rank", None)) == ("diet-rel", None)


# From the command line to the model

ARCH = "diet_abs_tiny"  # 4 layers, width 128, 4 heads of 32
ROBERTA = "roberta_diet_rel_tiny"


@pytest.fixture(autouse=True)
def _user_dir_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is there already; fairseq would import it a second time."""
    monkeypatch.setattr("fairseq.utils.import_user_module", lambda args: None)


def parse(*flags: str, arch: str = ARCH) -> DictConfig:
    """The model's part of the configuration that ``fairseq-train --arch ARCH FLAGS`` makes."""
    parser = fairseq_options.get_training_parser()
    args = fairseq_options.parse_args_and_arch(
        parser, ["no-data", "--user-dir", "no-folder", "--arch", arch, *flags]
    )
    return convert_namespace_to_omegaconf(args).model


def built(*flags: str, arch: str = ARCH) -> Any:
    """From the model's own options alone: all of fairseq's take most of a second."""
    parser = argparse.ArgumentParser(allow_abbrev=False, argument_default=argparse.SUPPRESS)
    model: Any = ARCHITECTURES[arch]
    model.add_args(parser)
    short = ["--max-source-positions", "20"]
    if model is DietTransformerModel:
        short += ["--max-target-positions", "15"]
    args = parser.parse_args([*short, *flags])
    ARCH_CONFIG_REGISTRY[arch](args)
    return model.build_model(args, ToyTask())


def total(model: DietTransformerModel) -> int:
    return sum(parameter.numel() for parameter in position_parameters(model).values())


def slowest_pair(model: DietTransformerModel) -> float:
    """By how much the last of 16 pairs turns, as a part of what it does by default."""
    encoding = model.encoder.self_attn_positions.encoding
    return float(encoding.frequencies(32, torch.zeros(1))[0, -1]) / BASE ** (-15 / 16)


EIGHT = ",".join(["1.5"] * 15 + ["8"])  # of 16 pairs

# For options of ours: the architecture, the flags, and what they change in the model of 4 layers
# and 4 heads of size 32, with 20 source and 15 target positions.
EFFECTS: dict[str, tuple[str, Any, Any]] = {
    "diet_abs --position-encoding learned": ("embed_positions is None", False, True),
    "diet_abs --position-in cross,decoder": ("self_attn_positions is None", True, False),
    "diet_abs --position-layers 1,3": (
        lambda model: model.decoder.encoder_attn_positions.shape.skipped,
        (0, 2),
        (),
    ),
    "diet_abs --position-input learned": ("embed_positions is None", False, True),
    "diet_abs --position-randomized 30": ("token_positions.count", 30, None),
    "diet_abs --compile": ("cfg.compile", True, False),
    "diet_abs --reset-positions": (lambda model: model.cfg.reset_positions, True, False),
    "diet_abs --beyond-table clip": ("attention_shape.extrapolation", "clip", None),
    "diet_abs --position-sharing head-wise": (
        lambda model: [len(table.query) for table in model.encoder.self_attn_positions.tables()],
        [1, 1, 1, 1],
        None,
    ),
    "diet_abs --position-rank 5": (total, 2 * 5 * 4 * (20 + 15 + 35 / 2), None),
    # Three kinds of attention, four layers each.
    "shaw --position-clip 3": (total, 3 * 4 * (2 * 3 + 1) * 32, None),
    "shaw --position-values": (total, 3 * 4 * 2 * (2 * 16 + 1) * 32, None),
    "t5 --position-buckets 20": (total, 3 * 4 * 20, None),
    "t5 --position-max-distance 18": (lambda model: "distance=18" in model.signature, True, False),
    "shape --position-shift 7": (
        lambda model: len(model.encoder.embed_positions.table()),
        27,
        None,
    ),
    "linformer --linformer-k 7": (total, 4 * 2 * 20 * 7 + 35 * 128, None),
    "concat --position-rank 24": (total, 35 * 24, None),
    "diet_abs_lin --position-rank 5 --linformer-k 6": (
        total,
        4 * 2 * 20 * 6 + 4 * (20 + 6) * 5 + 4 * 5 * (2 * 15 + 35),
        None,
    ),
    "kerple --position-kernel power": ("self_attn_positions.kernel", "power", "log"),
    # m and b of 4 heads; P of 2k rows and, unless shared, two projections of 4 layers.
    "alibi --position-trained-slopes": (total, 3 * 2 * 4, 0),
    "deberta --position-buckets 20": (total, 2 * (2 * 20 * 128 + 4 * 2 * 128 * 128), None),
    "deberta --position-shared-projections": (total, 2 * 2 * 512 * 128, None),
    "cape --position-local-shift 1.5": ("embed_positions.local_shift", 1.5, None),
    "cape --position-global-shift 1.5": ("embed_positions.global_shift", 1.5, None),
    "cape --position-global-scale 1.5": ("embed_positions.global_scale", 1.5, None),
    "rotary --position-base 100": (slowest_pair, 100 ** (15 / 16), 1.0),
    "rotary --position-fraction 0.5": (slowest_pair, 0.0, 1.0),
    "rotary --position-scaling linear --position-scaling-factor 4": (slowest_pair, 1 / 4, 1.0),
    # Of 12 tokens the pairs 0 and 1 of 16 turn once or more.
    "rotary --position-trained-length 12 --position-scaling yarn --position-scaling-factor 8": (
        slowest_pair,
        1 / 8,
        1.0,
    ),
    f"rotary --position-pair-factors {EIGHT} --position-scaling longrope "
    "--position-scaling-factor 4 --position-trained-length 12": (slowest_pair, 1 / 8, 1.0),
    "diet_abs --attention-scale model": ("layers.0.self_attn.scaling", 128**-0.5, 32**-0.5),
}


@cache
def plain_model(arch: str) -> Any:
    return built(arch=arch)


def effect_on(model: Any, effect: Any) -> Any:
    if not isinstance(effect, str):
        return effect(model)
    path, _, wanted = effect.partition(" is ")
    value: Any = model.encoder
    for name in path.split("."):
        value = value[int(name)] if name.isdigit() else getattr(value, name, None)
    return value is None if wanted else value


@pytest.mark.parametrize("words", EFFECTS)
def test_an_option_of_ours_changes_the_built_model(words: str) -> None:
    encoding, *flags = words.split()
    effect, expected, usual = EFFECTS[words]
    model = built(*flags, arch=f"{encoding}_tiny")
    plain = plain_model(f"{encoding}_tiny")
    assert effect_on(model, effect) == pytest.approx(expected)
    assert effect_on(plain, effect) != pytest.approx(expected)
    assert usual is None or effect_on(plain, effect) == pytest.approx(usual)
    # And the checkpoint has it, but for options that change no weights.
    no_weights = ("--beyond-table", "--compile", "--reset-positions")
    assert (model.signature == plain.signature) == (flags[0] in no_weights)


def test_every_option_of_ours_has_an_effect() -> None:
    names = {flag(name) for name in OWN - {"_name"}}
    assert names <= {word for words in EFFECTS for word in words.split()}


def test_options_left_out_are_the_defaults() -> None:
    cfg = nested_config(parse(arch="diet_transformer"), NestedConfig)
    assert cfg.signatures()[0] == "diet-rel sharing=none scale=head"
    assert (cfg.encoder.layers, cfg.encoder.embed_dim) == (6, 512)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(DietTransformerConfig, TransformerModel), (DietRobertaConfig, RobertaModel)],
)
def test_every_option_of_fairseqs_model_is_there(ours: Any, theirs: Any) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    theirs.add_args(parser)
    names = {action.dest for action in parser._actions} - {"help"}
    assert names - {field.name for field in dataclasses.fields(ours)} == set()


# Options of fairseq that would lead positions past the one path that carries them.
REFUSED: dict[str, Any] = {
    "no_token_positional_embeddings": True,
    "encoder_learned_pos": True,
    "decoder_learned_pos": True,
    "cross_self_attention": True,
    "encoder_xformers_att_config": "x",
    "decoder_xformers_att_config": "x",
    "base_layers": 1,
}
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
}
OWN = {field.name for field in dataclasses.fields(TranslationOptions)}
# The width of the output goes with no embedding shared with it; for ours see EFFECTS.
NOT_TOGETHER = {"_name", "decoder_output_dim", *REFUSED, *OWN}


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
    fields = [f for f in dataclasses.fields(DietTransformerConfig) if f.name not in NOT_TOGETHER]
    values = {field.name: some_value(number, field) for number, field in enumerate(fields)}
    flags: list[str] = []
    for name, value in values.items():
        flags += [flag(name)] if value is True else [flag(name), str(value)]
    assert len(fields) > 40
    cfg = nested_config(parse(*flags), NestedConfig)
    for field in fields:
        part, _, name = field.name.partition("_")
        if field.name.startswith("quant_noise_"):
            part, name = "quant_noise", field.name.removeprefix("quant_noise_")
        nested = part in ("encoder", "decoder", "quant_noise")
        value = getattr(getattr(cfg, part), name) if nested else getattr(cfg, field.name)
        assert value == values[field.name] != field.default, field.name


def test_the_decoder_has_its_own_width_inside_unless_given() -> None:
    """And fairseq-fixed keeps nested defaults as classes: writing to one would change them all."""
    model = build("diet-rel", decoder_output_dim=14, decoder_input_dim=10)
    assert model.decoder.project_out_dim.weight.shape == (14, 16)
    assert model.decoder.output_projection.weight.shape == (44, 14)
    cfg = nested_config(options("none"), NestedConfig)
    assert (cfg.decoder.input_dim, cfg.decoder.output_dim) == (16, 16)
    fresh = TransformerModel.build_model(options("none"), ToyTask()).cfg
    assert not fresh.no_token_positional_embeddings


# Encoder-only models


def test_defaults_are_those_of_fairseqs_roberta() -> None:
    theirs = Namespace()
    roberta_base(theirs)
    ours = plain_options(Namespace(position_encoding="learned"))
    for name in vars(theirs).keys() - {"max_positions", "encoder_learned_pos"}:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert (ours.max_positions, ours.max_source_positions) == (512, 512)


# Flags, and what the model then has.
REACHED: dict[str, dict[str, object]] = {
    "": {
        "encoder.sentence_encoder.segment_positions": None,
        "encoder.args.max_positions": 20,
        "encoder.sentence_encoder.embed_scale": 1.0,
        "max_positions": 20,
    },
    "--segment-encoding per-head --max-positions 15 --encoder-layers 3 --activation-fn relu": {
        "encoder.sentence_encoder.segment_positions.count": 2,
        "encoder.sentence_encoder.num_layers": 3,
        "args.activation_fn": "relu",
        "encoder.args.max_positions": 15,
        "max_positions": 15,
        "encoder.sentence_encoder.self_attn_positions.shape.max_keys": 20,
    },
    "--position-randomized 600": {
        "encoder.sentence_encoder.token_positions.count": 600,
        "encoder.sentence_encoder.token_positions.longest": 20,
    },
    "--segment-encoding per-head --num-segments 3": {
        "encoder.sentence_encoder.segment_positions.count": 3,
    },
    "--segment-encoding input --num-segments 3 --position-encoding t5 --position-sharing none": {
        "encoder.sentence_encoder.segment_input.weight.shape": (3, 128),
        "signature": "t5 sharing=none buckets=32 max-distance=128 scale=head",
    },
    # Words are as large as BERT's, except with sinusoids, which cannot be.
    "--position-encoding sinusoidal": {"encoder.sentence_encoder.embed_scale": 128**0.5},
}


@pytest.mark.parametrize("flags", REACHED)
def test_flags_reach_the_encoder(flags: str) -> None:
    model = built(*flags.split(), arch=ROBERTA)
    for path, expected in REACHED[flags].items():
        value: Any = model
        for name in path.split("."):
            value = getattr(value, name)
        assert (value() if callable(value) else value) == expected, path


class MaskedTask(ToyTask):
    """A task that cuts text into blocks; older ones keep their options under another name."""

    def __init__(self, tokens: int, name: str = "cfg") -> None:
        super().__init__()
        setattr(self, name, Namespace(tokens_per_sample=tokens))


@pytest.mark.parametrize(
    ("task", "flags", "expected"),
    [
        (MaskedTask(70), "", (70, 70)),
        (MaskedTask(70, "args"), "", (70, 70)),
        (MaskedTask(70), "--max-source-positions 90", (90, 90)),
        (MaskedTask(70), "--max-positions 15", (15, 512)),
        (MaskedTask(70), "--max-positions 15 --max-source-positions 90", (15, 90)),
        (ToyTask(), "", (512, 512)),
    ],
)
def test_positions_are_those_of_the_tasks_blocks(
    task: ToyTask, flags: str, expected: tuple[int, int]
) -> None:
    """The longest input, rows of the tables, and the latter as a checkpoint has it."""
    given = parse(*flags.split(), arch=ROBERTA)
    model = DietRobertaModel.build_model(given, task)
    rows = model.encoder.sentence_encoder.self_attn_positions.shape.max_keys
    assert (model.max_positions(), rows, given.max_source_positions) == (*expected, expected[1])


def test_a_restored_model_keeps_its_length() -> None:
    """The task that restores it may cut text into other blocks, or into none."""
    small = ("--encoder-layers", "1", "--encoder-embed-dim", "24", "--encoder-attention-heads", "2")
    model = parse(*small, arch="diet_roberta")
    build_model(model, MaskedTask(70))
    saved = OmegaConf.create(OmegaConf.to_container(model._get_parent(), resolve=True))
    for task in (MaskedTask(30), ToyTask()):
        assert build_model(saved.model, task, from_checkpoint=True).max_positions() == 70


LONGROPE = {
    "position_scaling": "longrope",
    "position_scaling_factor": 2.0,
    "position_trained_length": 9,
}
# Options that no model can have: the encoding, the options, and what the error names. More of what
# an encoding refuses: tests/positions/test_registry.py.
INVALID: list[tuple[str, dict[str, Any], str]] = [
    ("diet_rel", {}, "--position-encoding diet_rel"),
    ("diet-rel", {"beyond_table": "cut"}, "--beyond-table cut"),
    ("diet-rel", {"beyond_table": "clip", "position_randomized": 30}, "--position-randomized"),
    ("none", {"position_randomized": 23}, "none has no positions"),
    ("shape", {"position_randomized": 23}, "shape draws its positions"),
    ("diet-rel", {"position_randomized": 23, "position_input": "cape"}, "cape draws"),
    ("diet-rel", {"position_randomized": 10}, "--position-randomized 10"),
    ("concat", {"position_rank": 12}, "12 (--position-rank)"),
    ("rotary", {"encoder_embed_dim": 15}, "head size of 5"),
    ("rotary", {"position_fraction": 0.1}, "not 0 of a head size of 4"),
    ("rotary", {**LONGROPE, "position_pair_factors": "1,2"}, "--position-pair-factors 1,2"),
    ("rotary", {**LONGROPE, "position_pair_factors": "1,-2"}, "--position-pair-factors 1,-2"),
    ("diet-rel", {"encoder_embed_dim": 14}, "--encoder-attention-heads 3"),
    ("diet-rel", {"decoder_attention_heads": 5}, "--decoder-embed-dim 16"),
    ("sinusoidal", {"encoder_embed_dim": 15}, "not 15"),
    (
        "diet-rel",
        {"decoder_output_dim": 14, "share_decoder_input_output_embed": True},
        "--decoder-output-dim 14",
    ),
    ("diet-rel", {"encoder_attention_heads": 0}, "--encoder-attention-heads 0"),
    ("diet-rel", {"max_target_positions": 0}, "--max-target-positions 0"),
    ("diet-rel", {"dropout": 1.5}, "--dropout 1.5"),
    # Where positions act, and what is added at the input.
    ("diet-rel", {"position_in": "encodr"}, "--position-in encodr"),
    ("diet-rel", {"position_in": ""}, "--position-in"),
    ("rotary", {"position_in": "cross"}, "rotary"),
    ("diet-abs-lin", {"position_in": "decoder,cross"}, "encoder"),
    ("t5", {"position_in": "cross", "no_cross_attention": True}, "--position-in cross"),
    ("learned", {"position_in": "encoder"}, "learned"),
    ("diet-rel", {"position_layers": "2"}, "--position-layers 2"),
    ("diet-rel", {"position_layers": "2:"}, "--position-layers 2::"),
    ("diet-rel", {"position_layers": "0:3:x"}, "--position-layers 0:3:x"),
    ("learned", {"position_layers": "1:"}, "--position-layers 1:"),
    ("diet-rel", {"position_layers": "1:", "decoder_layers_to_keep": "0,2"}, "layers-to-keep"),
    ("diet-rel", {"position_input": "t5"}, "--position-input t5"),
    ("learned", {"position_input": "sinusoidal"}, "learned"),
    ("diet-rel", {"position_input": "shape", "position_rank": 3}, "rank 3"),
    *(("none", {name: value}, flag(name)) for name, value in REFUSED.items()),
]
INVALID_FOR_ENCODERS: list[tuple[str, dict[str, Any], str]] = [
    ("diet-rel", {"segment_encoding": "both"}, "--segment-encoding both"),
    ("linformer", {"segment_encoding": "per-head"}, "keys of linformer"),
    ("diet-rel", {"num_segments": 0}, "--num-segments 0"),
    ("diet-rel", {"max_positions": 12}, "--max-positions 12"),
    ("diet-rel", {"max_source_positions": 0}, "--max-source-positions 0"),
    ("diet-rel", {"activation_fn": "swash"}, "--activation-fn swash"),
    ("diet-rel", {"mha_heads_to_keep": 1}, "--mha-heads-to-keep"),
    ("diet-rel", {"position_rank": 3}, "--position-rank 3"),
    ("diet-rel", {"position_in": "encoder"}, "--position-in encoder"),
]


@pytest.mark.parametrize(("encoding", "given", "named"), INVALID)
def test_invalid_options(encoding: str, given: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=re.escape(named)):
        build(encoding, **given)


@pytest.mark.parametrize(("encoding", "given", "named"), INVALID_FOR_ENCODERS)
def test_invalid_options_of_encoders(encoding: str, given: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=re.escape(named)) as error:
        toy_sentences.build(encoding, None, given.pop("segment_encoding", "none"), **given)
    assert "decoder" not in str(error.value), "there is none"


def test_all_problems_are_reported_together() -> None:
    wrong: dict[str, Any] = {"attention_scale": "key", "encoder_layers": 0, "position_rank": -3}
    wrong |= {"decoder_attention_heads": 5, "encoder_learned_pos": True}
    with pytest.raises(UserError) as error:
        build("diet-abs", "heads", **wrong)
    for name in (*wrong, "position_sharing"):
        assert flag(name) in str(error.value)
