"""Facts in a checkpoint, and the mean of several: by hand, and only of one model."""

from __future__ import annotations

import copy
import dataclasses
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from diet_mt.evaluation.average import last_checkpoints
from diet_mt.evaluation.checkpoint import direction_of, pretrained_of, read_training, task_of
from diet_mt.evaluation.options import RECORD, assignments
from diet_mt.evaluation.predict import own_positions
from diet_mt.evaluation.records import MODEL_OPTIONS, encoding_text
from diet_mt.models.options import DietTransformerConfig, PositionOptions
from diet_mt.models.roberta_options import plain_options, sentence_config
from diet_mt.system.errors import UserError

from ..checkpoints import write_checkpoint
from ..processes import called


def test_facts_of_a_training(place: Path) -> None:
    checkpoint = place / "run" / "checkpoint_best.pt"
    training = read_training(checkpoint, place / "data" / "toy.en-de" / "bin")
    state = torch.load(checkpoint, weights_only=True)["model"]
    # Shared: the embeddings of both sides and the output layer.
    shared = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")
    buffers = ("position_signature", "encoder.version", "decoder.version")
    assert training == {
        "arch": "diet_rel_tiny",
        "positions": {"encoding": "diet-rel", "sharing": "none", "scale": "head"},
        "model": {"share-all-embeddings": True},
        "seed": 5,
        "updates": 7,
        "epoch": 2,
        "parameters": sum(v.numel() for k, v in state.items() if k not in shared + buffers),
        "averaged": 1,
        "train_tokens": 840,  # 120 an update
    }


def test_every_option_of_the_model_is_in_the_record(place: Path, tmp_path: Path) -> None:
    data = place / "data" / "toy.en-de" / "bin"
    words = ["--arch", "diet_abs_tiny", "--max-source-positions", "9", "--encoder-layers", "1"]
    words += ["--max-target-positions", "9", "--dropout", "0.4", "--encoder-layerdrop", "0.1"]
    words += ["--decoder-layers", "4", "--decoder-attention-heads", "8"]  # 4 layers as ever
    for rank, sharing in ((None, "none"), ("64", "layer-wise")):
        own = ["--position-sharing", sharing, *(("--position-rank", rank) if rank else ())]
        write_checkpoint(data, tmp_path / f"{rank}.{sharing}", *words, *own)
        training = read_training(tmp_path / f"{rank}.{sharing}" / "checkpoint_best.pt", data)
        name = f"sharing={sharing} rank={rank}" if rank else f"sharing={sharing}"
        assert encoding_text(training["positions"]) == f"diet-abs {name} scale=head"
        assert assignments(training["model"]) == (
            "decoder-attention-heads=8 encoder-layers=1 max-source-positions=9 "
            "max-target-positions=9 share-all-embeddings"
        )


def test_every_option_is_the_model_s_the_encoding_s_or_of_the_training() -> None:
    """A new one of fairseq's has to be placed."""
    of_the_training = {
        *("dropout", "attention-dropout", "activation-dropout", "relu-dropout", "export"),
        *("adaptive-softmax-dropout", "encoder-layerdrop", "decoder-layerdrop", "compile"),
        *("encoder-embed-path", "decoder-embed-path", "checkpoint-activations"),
        *("offload-activations", "min-params-to-wrap", "quant-noise-pq", "reset-positions"),
        "quant-noise-pq-block-size",
    }
    names, encoding = (
        {field.name.replace("_", "-") for field in dataclasses.fields(kind)} - {"-name"}
        for kind in (DietTransformerConfig, PositionOptions)
    )
    assert names <= MODEL_OPTIONS | encoding | of_the_training
    assert not MODEL_OPTIONS & (encoding | of_the_training)


def test_the_direction_is_that_of_the_checkpoint(place: Path, tmp_path: Path) -> None:
    data = place / "data" / "toy.en-de" / "bin"
    assert direction_of(place / "run" / "checkpoint_best.pt", data, "test") == ("en", "de")
    assert direction_of(place / "back" / "checkpoint_best.pt", data, "test") == ("de", "en")
    (tmp_path / "test.cs-en.cs.idx").touch()
    with pytest.raises(UserError, match=r"de-en.*cs-en"):
        direction_of(place / "back" / "checkpoint_best.pt", tmp_path, "test")
    state = {"cfg": {"task": Namespace(task="multilingual_translation", lang_pairs="en-de")}}
    with pytest.raises(UserError, match=r"a\.pt: .*multilingual_translation"):
        task_of(Path("a.pt"), state)


@pytest.mark.parametrize(
    ("arch", "given", "expected"),
    [
        ("roberta_diet_abs_base", {"position_rank": 64}, 64),
        ("roberta_diet_abs_base", {"position_rank": 128}, None),
        ("roberta_diet_abs_base", {"position_encoding": "concat", "position_rank": 128}, 128),
        ("roberta_diet_rel_base", {"position_encoding": "diet-abs", "position_rank": 64}, 64),
    ],
)
def test_the_rank_of_a_fine_tuned_model(
    arch: str, given: dict[str, Any], expected: int | None
) -> None:
    """In the row where it is not that of the architecture."""
    model = Namespace(**given)
    ARCH_CONFIG_REGISTRY[arch](model)
    (text, *_) = sentence_config(plain_options(model)).signatures()
    positions = own_positions(text, arch)
    assert (positions["encoding"], positions.get("rank")) == (model.position_encoding, expected)
    assert positions["scale"] == "head"


def test_the_pretrained_model_is_that_of_the_record(tmp_path: Path) -> None:
    """A path in the checkpoint is not opened: here it is a device that never ends."""
    best = tmp_path / "best.pt"
    saved = {"checkpoint": {"finetune_from_model": "/dev/zero"}}
    facts = {"pretrained_sha256": "a" * 64, "pretrain_updates": 7, "pretrain_perplexity": 2.5}
    with pytest.raises(UserError, match=r"/dev/zero.*--pretrained"):
        pretrained_of(best, saved)
    (tmp_path / RECORD).write_text(json.dumps(facts))
    assert pretrained_of(best, saved) == facts
    nothing = {"pretrained_sha256": "", "pretrain_updates": 0, "pretrain_perplexity": 0.0}
    assert pretrained_of(best, {"checkpoint": {"finetune_from_model": None}}) == nothing
    (tmp_path / RECORD).write_text("{}")
    with pytest.raises(UserError, match=RECORD):
        pretrained_of(best, saved)


OPTIONS = {"_name": "diet_rel_tiny", "encoder_layers": 2, "dropout": 0.1}


def state(value: float, updates: int = 1, **options: Any) -> dict[str, Any]:
    """A checkpoint of a model with one number for its weights."""
    shared = torch.full((3, 2), value)
    return {
        "args": None,
        "cfg": {"model": OPTIONS | options, "task": {"source_lang": "en", "target_lang": "de"}},
        "model": {
            "encoder.embed": shared,
            "decoder.embed": shared,
            "half": torch.full((2,), value, dtype=torch.bfloat16),
            "signature": torch.tensor([7, updates]),
        },
        "optimizer_history": [{"num_updates": updates}],
        "extra_state": {"train_iterator": {"epoch": 2}},
        "last_optimizer_state": {"state": {0: torch.zeros(100)}},
    }


def write(folder: Path, states: dict[str, Any]) -> list[str]:
    for name, one in states.items():
        torch.save(one, folder / name)
    return [str(folder / name) for name in states]


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(path, weights_only=True)
    return loaded


def test_the_mean_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # In bfloat16, 257 is 256: its last digit is worth 2 there.
    states = {"a.pt": state(1.0, 10), "b.pt": state(2.0, 20), "c.pt": state(768.0, 30)}
    paths = write(tmp_path, states)
    assert called("average", *paths, "--out", tmp_path / "mean.pt", "--dry-run") == 0
    assert not (tmp_path / "mean.pt").exists()
    assert called("average", *paths, "--out", tmp_path / "mean.pt") == 0
    mean = read(tmp_path / "mean.pt")
    model = mean["model"]
    assert model["encoder.embed"].tolist() == [[257.0, 257.0]] * 3
    assert model["half"].tolist() == [257.0, 257.0]
    assert model["half"].dtype == torch.float32
    assert model["signature"].tolist() == [7, 30]
    # What was shared still is: one tensor in the file, and one in memory.
    assert model["decoder.embed"].data_ptr() == model["encoder.embed"].data_ptr()
    assert "last_optimizer_state" not in mean
    parts = [("a.pt", 10), ("b.pt", 20), ("c.pt", 30)]
    assert mean["averaged"] == [{"file": name, "updates": updates} for name, updates in parts]
    assert (mean["extra_state"], mean["cfg"]) == (state(0)["extra_state"], state(0)["cfg"])


def test_one_of_each_is_itself(tmp_path: Path) -> None:
    """Also of a masked language model, which has no languages."""
    one = state(0.1)
    one["cfg"]["task"] = {"data": "x"}
    (path,) = write(tmp_path, {"a.pt": one})
    assert called("average", path, path, "--out", tmp_path / "mean.pt") == 0
    mean = read(tmp_path / "mean.pt")["model"]["encoder.embed"]
    assert torch.equal(mean, torch.full((3, 2), 0.1))
    assert called("average", path, "--out", f"{path}/mean.pt") == 2  # no folder


def test_the_last_are_those_of_the_highest_numbers(tmp_path: Path) -> None:
    """Of intervals; of epochs where there are none."""
    epochs = ["checkpoint9.pt", "checkpoint10.pt"]
    for name in ("checkpoint2.pt", *epochs, "checkpoint_best.pt", "checkpoint_last.pt"):
        (tmp_path / name).touch()
    assert [path.name for path in last_checkpoints(tmp_path, 2)] == epochs
    names = [f"checkpoint_{number}.pt" for number in ("1_9", "1_10", "2_11", "10_100")]
    for name in (*names, "checkpoint_1_9.pt.part"):
        (tmp_path / name).touch()
    assert [path.name for path in last_checkpoints(tmp_path, 3)] == names[1:]
    with pytest.raises(UserError, match=r"4 .*5 "):
        last_checkpoints(tmp_path, 5)


def other(**changes: Any) -> dict[str, Any]:
    """A checkpoint whose model has these tensors, too."""
    changed = copy.deepcopy(state(1.0))
    changed["model"] |= changes
    return changed


@pytest.mark.parametrize(
    ("second", "named"),
    [
        (state(1.0, _name="none_tiny"), "'none_tiny'"),
        (state(1.0, dropout=0.3), "dropout: "),
        (other(half=torch.zeros(3)), "tensor half: "),
        (other(more=torch.zeros(1)), "tensor more"),
        ({"weights": torch.zeros(1)}, "not a checkpoint of fairseq-train"),
        ({"model": Path("x")}, "could run code"),
        (None, "b.pt"),
    ],
)
def test_another_model_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second: Any, named: str
) -> None:
    paths = write(tmp_path, {"a.pt": state(1.0)})
    if second:
        torch.save(second, tmp_path / "b.pt")
    assert called("average", *paths, f"{tmp_path}/b.pt", "--out", f"{tmp_path}/mean.pt") == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {tmp_path}/b.pt")
    assert named in message
    assert message.count("\n") == 1
    assert not list(tmp_path.glob("mean*"))
