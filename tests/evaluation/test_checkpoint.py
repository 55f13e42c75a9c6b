"""What a checkpoint and its data say."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.evaluation.checkpoint import (
    device,
    direction_of,
    language_pair,
    read_training,
    task_of,
)
from diet_mt.evaluation.options import assignments
from diet_mt.evaluation.records import MODEL_OPTIONS, encoding_text, system_of
from diet_mt.models._options import DietTransformerConfig, PositionOptions

from .prepared import write_checkpoint


@pytest.mark.parametrize(
    ("arch", "system"),
    [
        ("diet_rel_tiny", "diet_rel"),
        ("none_big", "none"),
        ("transformer", "transformer"),
        ("transformer_iwslt_de_en", "transformer_iwslt_de_en"),
    ],
)
def test_the_system_of_an_architecture(arch: str, system: str) -> None:
    assert system_of(arch) == system


def test_facts_of_a_training(place: Path) -> None:
    training = read_training(
        place / "run" / "checkpoint_best.pt", place / "data" / "toy.en-de" / "bin"
    )
    state = torch.load(place / "run" / "checkpoint_best.pt", weights_only=True)["model"]
    # Shared: the embeddings of both sides and the output layer.
    shared = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")
    buffers = ("position_signature", "encoder.version", "decoder.version")
    counted = sum(v.numel() for k, v in state.items() if k not in shared + buffers)
    assert training.parameters == counted
    assert (training.arch, training.seed) == ("diet_rel_tiny", 5)
    assert (training.updates, training.epoch) == (7, 2)
    assert (training.train_tokens, training.averaged) == (840, 1)  # 120 an update
    assert encoding_text(training.positions) == "diet-rel sharing=none scale=head"
    assert training.model == {"share-all-embeddings": True}


def test_every_option_of_the_model_is_in_the_record(place: Path, tmp_path: Path) -> None:
    data = place / "data" / "toy.en-de" / "bin"
    words = ["--arch", "diet_abs_tiny", "--max-source-positions", "9", "--encoder-layers", "1"]
    words += ["--max-target-positions", "9"]
    words += ["--decoder-layers", "4", "--decoder-attention-heads", "8"]  # 4 of them as ever
    words += ["--dropout", "0.4", "--encoder-layerdrop", "0.1"]
    found = []
    for rank, sharing in ((None, "none"), ("64", "layer-wise"), ("512", "none")):
        own = ["--position-sharing", sharing, *(("--position-rank", rank) if rank else ())]
        write_checkpoint(data, tmp_path / f"{rank}.{sharing}", *words, *own)
        training = read_training(tmp_path / f"{rank}.{sharing}" / "checkpoint_best.pt", data)
        own = f"sharing={sharing} rank={rank}" if rank else f"sharing={sharing}"
        assert encoding_text(training.positions) == f"diet-abs {own} scale=head"
        found.append(assignments(training.model))
    assert set(found) == {
        "decoder-attention-heads=8 encoder-layers=1 max-source-positions=9 "
        "max-target-positions=9 share-all-embeddings"
    }


def test_every_option_is_the_model_s_the_encoding_s_or_of_the_training() -> None:
    """A new one of fairseq's has to be placed."""
    of_the_training = {
        "dropout",
        "attention-dropout",
        "activation-dropout",
        "relu-dropout",
        "adaptive-softmax-dropout",
        "encoder-layerdrop",
        "decoder-layerdrop",
        "encoder-embed-path",
        "decoder-embed-path",
        "checkpoint-activations",
        "compile",
        "offload-activations",
        "min-params-to-wrap",
        "quant-noise-pq",
        "quant-noise-pq-block-size",
        "export",
    }
    names, encoding = (
        {field.name.replace("_", "-") for field in dataclasses.fields(kind)} - {"-name"}
        for kind in (DietTransformerConfig, PositionOptions)
    )
    assert names <= MODEL_OPTIONS | encoding | of_the_training
    assert not MODEL_OPTIONS & (encoding | of_the_training)


def test_a_damaged_checkpoint_is_refused_in_one_line(place: Path, tmp_path: Path) -> None:
    whole = (place / "run" / "checkpoint_best.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cut\.pt: ") as caught:
        read_training(tmp_path / "cut.pt", place / "data" / "toy.en-de" / "bin")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="no such checkpoint"):
        read_training(tmp_path / "gone.pt", place)


def test_the_language_pair_is_that_of_the_data(place: Path) -> None:
    assert language_pair(place / "data" / "toy.en-de" / "bin", "test") == ("en", "de")
    with pytest.raises(UserError, match="no 'test2' data"):
        language_pair(place / "data" / "toy.en-de" / "bin", "test2")


def test_the_direction_is_that_of_the_checkpoint(place: Path, tmp_path: Path) -> None:
    data = place / "data" / "toy.en-de" / "bin"
    assert direction_of(place / "run" / "checkpoint_best.pt", data, "test") == ("en", "de")
    assert direction_of(place / "back" / "checkpoint_best.pt", data, "test") == ("de", "en")
    (tmp_path / "test.cs-en.cs.idx").touch()
    with pytest.raises(UserError, match=r"translates de-en, but .* holds cs-en"):
        direction_of(place / "back" / "checkpoint_best.pt", tmp_path, "test")


def test_the_device_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"GPU {number}")
    assert device(["--beam", "2"]) == "GPU 0"
    assert device(["--cpu"]) == "cpu"


def test_a_task_of_several_languages_is_named() -> None:
    state = {"cfg": {"task": Namespace(task="multilingual_translation", lang_pairs="en-de")}}
    with pytest.raises(UserError, match=r"a\.pt: .*multilingual_translation"):
        task_of(Path("a.pt"), state)
