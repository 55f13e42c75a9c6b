"""Options of encoder-only models: from fairseq's command line parser to the built model, and
invalid ones.
"""

from __future__ import annotations

import argparse
import dataclasses
from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq.models import build_model
from fairseq.models.roberta.model import RobertaModel, base_architecture
from omegaconf import OmegaConf

from diet_mt.errors import UserError
from diet_mt.models._roberta_options import DietRobertaConfig, plain_options, sentence_config
from diet_mt.models.diet_roberta import DietRobertaModel

from ..toy import ToyTask, times_computed
from ..toy_sentences import build
from .test_options import _user_dir_is_imported as _user_dir_is_imported
from .test_options import parse, parse_own, whole_configuration

# hydra (fairseq-fixed) says so for every configuration of fairseq.
pytestmark = pytest.mark.filterwarnings("ignore:\\s*.config. is validated against:UserWarning")

ARCH = "roberta_diet_rel_tiny"


def built(*flags: str, arch: str = ARCH) -> DietRobertaModel:
    short = "--max-source-positions", "20"
    args = parse_own(DietRobertaModel, *short, *flags, arch=arch)
    return DietRobertaModel.build_model(args, ToyTask())


def test_defaults_are_those_of_fairseqs_roberta() -> None:
    theirs = Namespace()
    base_architecture(theirs)
    ours = plain_options(Namespace(position_encoding="learned"))
    for name in vars(theirs).keys() - {"max_positions", "encoder_learned_pos"}:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert (ours.max_positions, ours.max_source_positions) == (512, 512)


def test_every_option_of_fairseqs_roberta_is_there() -> None:
    parser = argparse.ArgumentParser()
    RobertaModel.add_args(parser)
    theirs = {action.dest for action in parser._actions} - {"help"}
    assert theirs <= {each.name for each in dataclasses.fields(DietRobertaConfig)}


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
    "--segment-encoding per-head --num-segments 3": {
        "encoder.sentence_encoder.segment_positions.count": 3,
    },
    "--segment-encoding input --num-segments 3 --position-encoding t5 --position-sharing none": {
        "encoder.sentence_encoder.segment_input.weight.shape": (3, 128),
        "signature": "t5 sharing=none buckets=32 max-distance=128 scale=head",
    },
}


@pytest.mark.parametrize("flags", REACHED)
def test_flags_reach_the_model(flags: str) -> None:
    model = built(*flags.split())
    for path, expected in REACHED[flags].items():
        found: Any = model
        for name in path.split("."):
            found = getattr(found, name)
        found = found() if callable(found) else found
        assert found == expected, path


class MaskedTask(ToyTask):
    """A task that cuts text into blocks; older ones keep their options under another name."""

    def __init__(self, tokens: int, name: str = "cfg") -> None:
        super().__init__()
        setattr(self, name, Namespace(tokens_per_sample=tokens))


def lengths(task: ToyTask, *flags: str, arch: str = ARCH) -> tuple[int, int, int]:
    """Longest input, rows of the tables, and what a checkpoint says of the latter."""
    given = parse(*flags, arch=arch)
    model = DietRobertaModel.build_model(given, task)
    rows = model.encoder.sentence_encoder.self_attn_positions.shape.max_keys
    return model.max_positions(), rows, given.max_source_positions


def test_positions_are_those_of_the_tasks_blocks() -> None:
    """As in fairseq's RoBERTa, where neither of the two options is given."""
    task = MaskedTask(70)
    assert lengths(task) == lengths(MaskedTask(70, "args")) == (70, 70, 70)
    theirs = parse("--encoder-layers", "1", arch="roberta")
    theirs.tokens_per_sample = 70
    assert RobertaModel.build_model(theirs, task).max_positions() == 70


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--max-source-positions", "90"), (90, 90, 90)),
        (("--max-positions", "15"), (15, 512, 512)),
        (("--max-positions", "15", "--max-source-positions", "90"), (15, 90, 90)),
    ],
)
def test_what_is_given_wins_over_the_tasks_blocks(
    flags: tuple[str, ...], expected: tuple[int, int, int]
) -> None:
    assert lengths(MaskedTask(70), *flags) == expected


def test_without_blocks_positions_are_as_many_as_berts() -> None:
    assert lengths(ToyTask()) == (512, 512, 512)


def test_a_restored_model_keeps_its_length() -> None:
    """The task that restores it may cut text into other blocks, or into none."""
    small = ("--encoder-layers", "1", "--encoder-embed-dim", "24", "--encoder-attention-heads", "2")
    model = whole_configuration(*small, arch="diet_roberta").model
    build_model(model, MaskedTask(70))
    saved = OmegaConf.create(OmegaConf.to_container(model._get_parent(), resolve=True))
    for task in (MaskedTask(30), ToyTask()):
        assert build_model(saved.model, task, from_checkpoint=True).max_positions() == 70


@pytest.mark.parametrize("flag", ["--checkpoint-activations", "--offload-activations"])
def test_activations_can_be_checkpointed(flag: str) -> None:
    model, tokens = built(flag), torch.tensor([[0, 5, 6, 2]])
    with times_computed(model) as times:
        model(tokens)[0].sum().backward()
    assert len(times) == len(model.encoder.sentence_encoder.layers)
    assert set(times.values()) == {2}, "in the forward pass, and again in the backward pass"


def test_only_words_beside_sinusoids_are_scaled() -> None:
    scaled = built(arch="roberta_sinusoidal_tiny").encoder.sentence_encoder.embed_scale
    assert scaled == pytest.approx(128**0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"segment_encoding": "both"}, "--segment-encoding both: choose from none, input, per-h"),
        ({"num_segments": 0}, "--num-segments 0: must be at least 1"),
        ({"max_positions": 12}, "--max-positions 12: the model is built for 11 tokens; give --max"),
        ({"max_positions": -1}, "--max-positions -1"),
        ({"max_source_positions": 0}, "--max-source-positions 0: must be at least 1"),
        ({"activation_fn": "swash"}, "--activation-fn swash: choose from relu, "),
        ({"pooler_activation_fn": "swash"}, "--pooler-activation-fn swash: choose from relu, "),
        ({"mha_heads_to_keep": 1}, "--mha-heads-to-keep: "),
        ({"encoder_layers": 0}, "--encoder-layers 0: must be at least 1"),
        ({"encoder_embed_dim": 14}, "14 is not a multiple of --encoder-attention-heads 3"),
        ({"position_rank": 3}, "--position-rank 3: diet-rel has no such option"),
        ({"attention_scale": "key"}, "--attention-scale key: choose from head, model"),
    ],
)
def test_invalid_options(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        build("diet-rel", None, changes.pop("segment_encoding", "none"), **changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert "decoder" not in str(error.value), "there is none"


@pytest.mark.parametrize("encoding", ["linformer", "diet-abs-lin"])
def test_keys_of_no_single_token_have_no_segment(encoding: str) -> None:
    with pytest.raises(UserError, match=rf"keys of {encoding} are mixed.*use .*-encoding input"):
        build(encoding, None, "per-head")


def test_all_problems_are_reported_together() -> None:
    wrong: dict[str, Any] = {
        "segment_encoding": "both",
        "num_segments": 0,
        "max_positions": 99,
        "activation_fn": "swash",
        "attention_scale": "key",
        "encoder_layers": 0,
    }
    with pytest.raises(UserError) as error:
        sentence_config(plain_options(Namespace(max_source_positions=11, **wrong)))
    for name in wrong:
        assert f"--{name.replace('_', '-')} " in str(error.value)
