"""Checkpoints that fit, those that get segments at zero, and those that are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.models.roberta import RobertaModel
from omegaconf import OmegaConf
from torch import Tensor

from diet_mt.errors import UserError
from diet_mt.fairseq_patches.one_line_errors import one_line
from diet_mt.models.diet_roberta import DietRobertaModel

from ..toy import CASES, ToyTask
from ..toy_sentences import batch, build, each_kind, options, segment_parameters

State = dict[str, Tensor]


def features(model: DietRobertaModel) -> Tensor:
    out: Tensor = model(**batch("left"), features_only=True)[0]
    return out


def refused(model: DietRobertaModel, state: State) -> str:
    """The one line with which ``model`` refuses ``state``, after which it is as it was."""
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises((UserError, RuntimeError)) as error:
        model.load_state_dict(dict(state))
    line = one_line(error.value)
    assert line is not None
    assert "\n" not in line
    assert len(line) < 600
    if isinstance(error.value, UserError):  # torch itself copies what does fit
        assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)
    return line


@each_kind
def test_weights_load_back_strictly(encoding: str, sharing: str | None, segments: str) -> None:
    saved, loaded = (build(encoding, sharing, segments, seed=seed) for seed in (1, 2))
    assert not torch.allclose(features(saved), features(loaded))
    loaded.load_state_dict(saved.state_dict(), strict=True)
    assert torch.equal(features(saved), features(loaded))


with_segments = pytest.mark.parametrize(
    ("encoding", "segments"),
    [("diet-rel", "per-head"), ("diet-abs", "per-head"), ("shaw", "input"), ("linformer", "input")],
)


@with_segments
def test_a_checkpoint_without_segments_gets_them_at_zero(encoding: str, segments: str) -> None:
    """And the model computes what the one without segments computed, whatever the segments are."""
    plain = build(encoding)
    model = build(encoding, None, segments, seed=2)
    assert all(table.any() for table in segment_parameters(model).values())
    model.load_state_dict(plain.state_dict())
    assert not any(table.any() for table in segment_parameters(model).values())
    torch.testing.assert_close(features(model), features(plain), rtol=0, atol=1e-10)


@pytest.mark.parametrize("segments", ["input", "per-head"])
def test_a_classification_head_and_segments_can_both_be_new(segments: str) -> None:
    plain, model = build("diet-rel"), build("diet-rel", None, segments, seed=2)
    model.register_classification_head("new", num_classes=3)
    head = {
        name: tensor.clone() for name, tensor in model.classification_heads.state_dict().items()
    }
    model.load_state_dict(plain.state_dict())
    for name, tensor in model.classification_heads.state_dict().items():
        assert torch.equal(tensor, head[name])


@with_segments
def test_segments_that_are_lost_are_not_segments_that_never_were(
    encoding: str, segments: str
) -> None:
    model = build(encoding, None, segments)
    names = [*segment_parameters(model)]
    rest = {name: tensor for name, tensor in model.state_dict().items() if name not in names}
    assert names[0] in refused(model, rest)


@pytest.mark.parametrize("entry", ["segment_signature", "dictionary_signature"])
def test_checkpoints_of_before_there_were_signatures_are_taken_as_they_are(entry: str) -> None:
    model = build("diet-rel", None, "per-head")
    state = model.state_dict()
    expected = state.pop(entry)
    model.load_state_dict(dict(state))
    assert torch.equal(model.state_dict()[entry], expected)


def test_another_dictionary_of_the_same_size_is_refused() -> None:
    model = build("diet-rel")
    state = model.state_dict()
    state["dictionary_signature"] = state["dictionary_signature"].flip(0)
    assert "trained with another dictionary, so its embeddings are of other words" in refused(
        model, state
    )


@pytest.mark.parametrize("segments", ["none", "input", "per-head"])
def test_whatever_else_is_missing_is_an_error(segments: str) -> None:
    """Every single entry of the checkpoint, those of segments included."""
    model = build("diet-rel", None, segments)
    state = model.state_dict()
    # fairseq fills in its own number of the format; the other two came later.
    excepted = {
        "encoder.sentence_encoder.version", "segment_signature", "dictionary_signature",
    }  # fmt: skip
    for name in state.keys() - excepted:
        rest = {other: tensor for other, tensor in state.items() if other != name}
        line = refused(model, rest)
        named = "no position signature" if name == "position_signature" else name
        assert named in line


def test_what_is_missing_from_a_checkpoint_without_segments_is_an_error_too() -> None:
    model = build("diet-rel", None, "per-head")
    plain = build("diet-rel").state_dict()
    for name in ("encoder.lm_head.bias", "encoder.sentence_encoder.layers.1.fc1.weight"):
        rest = {other: tensor for other, tensor in plain.items() if other != name}
        assert name in refused(model, rest)


def test_what_is_too_much_is_an_error() -> None:
    model = build("diet-rel", None, "per-head")
    for state in (model.state_dict(), build("diet-rel").state_dict()):
        state["encoder.sentence_encoder.other"] = torch.zeros(1)
        assert "encoder.sentence_encoder.other" in refused(model, state)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("input", "per-head"), ("per-head", "input"), ("input", "none"), ("per-head", "none")],
)
def test_other_segments_are_refused(theirs: str, ours: str) -> None:
    line = refused(build("diet-rel", None, ours), build("diet-rel", None, theirs).state_dict())
    assert f"trained with --segment-encoding {theirs}, this model has {ours}" in line


@pytest.mark.parametrize("segments", ["none", "input"])
def test_every_other_encoding_is_refused(segments: str) -> None:
    """Also where segments would have to be added."""
    state = build("diet-rel", "none").state_dict()
    for case in CASES:
        if case != ("diet-rel", "none"):
            assert "trained with positions" in refused(build(*case, segments), state), case


@pytest.mark.parametrize(
    ("encoding", "segments", "changes", "named"),
    [
        ("diet-rel", "per-head", {"num_segments": 3}, "--num-segments"),
        ("learned", "input", {"num_segments": 7}, "--num-segments"),
        ("diet-rel", "none", {"max_source_positions": 12}, "--max-source-positions"),
        ("learned", "none", {"max_source_positions": 9}, "--max-source-positions"),
        ("tupe-abs", "none", {"max_source_positions": 9}, "--max-source-positions"),
        ("diet-abs", "none", {"position_rank": 3}, "rank=3 scale=head"),
        ("none", "none", {"encoder_ffn_embed_dim": 13}, "the checkpoint does not fit the model"),
        ("none", "none", {"encoder_layers": 3}, "the checkpoint does not fit the model"),
    ],
)
def test_other_sizes_are_refused(
    encoding: str, segments: str, changes: dict[str, Any], named: str
) -> None:
    state = build(encoding, None, segments, **changes).state_dict()
    assert named in refused(build(encoding, None, segments), state)


def test_fairseqs_own_checkpoint_is_refused() -> None:
    stock = RobertaModel.build_model(options("none", None, "none", max_positions=11), ToyTask())
    assert "no position signature" in refused(build("learned"), stock.state_dict())


@pytest.mark.parametrize("kept", ["0", "1"])
def test_pruning_keeps_the_segments_of_the_layers_that_are_kept(kept: str) -> None:
    """--encoder-layers-to-keep on a checkpoint of the whole model."""
    whole = build("diet-rel", None, "per-head")
    pruned = build("diet-rel", None, "per-head", seed=2, encoder_layers_to_keep=kept)
    cfg = OmegaConf.create({"_name": "diet_roberta", "encoder_layers_to_keep": kept})
    pruned.load_state_dict(whole.state_dict(), strict=True, model_cfg=cfg)
    ours, theirs = (m.encoder.sentence_encoder.segment_positions for m in (pruned, whole))
    assert len(ours.layers) == 1
    assert torch.equal(ours.layers[0].weight, theirs.layers[int(kept)].weight)
