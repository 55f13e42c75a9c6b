"""A checkpoint that names what could run code is refused before anything of it is built."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils

from diet_mt.errors import UserError
from diet_mt.fairseq_patches.named_parts import VARIABLE, names_in, refusal

pytestmark = pytest.mark.hostile

OURS: dict[str, Any] = {
    "model": {"_name": "diet_rel_tiny"},
    "task": {"_name": "translation", "data": "bin", "dataset_impl": "mmap"},
    "criterion": {"_name": "label_smoothed_cross_entropy"},
    "optimizer": {"_name": "adam"},
    "lr_scheduler": {"_name": "inverse_sqrt"},
    "bpe": None,
    "scoring": {"_name": "bleu"},
}


def saved(path: Path, **changes: Any) -> str:
    """A checkpoint without weights; ``args`` among the changes: in fairseq's old form."""
    state: dict[str, Any] = {"model": {}, "extra_state": {"train_iterator": {"epoch": 1}}}
    history = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}}
    state["optimizer_history"] = [{**history, "num_updates": 1}]
    if "args" in changes:
        state |= {"args": Namespace(**changes["args"]), "cfg": None}
    else:
        state |= {"args": None, "cfg": {**OURS, **changes}}
    torch.save(state, path)
    return str(path)


def test_what_our_trainings_name_is_taken(tmp_path: Path) -> None:
    file = saved(tmp_path / "a.pt")
    assert checkpoint_utils.load_checkpoint_to_cpu(file)["cfg"].model._name == "diet_rel_tiny"
    for arch in ("transformer_iwslt_de_en", "roberta_base", "roberta_diet_abs_tiny"):
        assert refusal("model", arch) is None
    own = {"bpe": {"_name": "diet_wordpiece"}, "criterion": {"_name": "extractive_qa"}}
    for part, name in (*names_in({"cfg": OURS}), *names_in({"cfg": own})):
        assert refusal(part, name) is None, (part, name)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        *(("model", name) for name in ("lstm", "fconv", "wav2vec2", "hubert", "no_such_model")),
        *(("task", name) for name in ("audio_pretraining", "speech_to_text", "no_such_task")),
        *(("criterion", "ctc"), ("optimizer", "composite"), ("bpe", "gpt2"), ("tokenizer", "x")),
    ],
)
def test_all_else_is_refused(
    part: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(tmp_path / "b.pt", **{part: {"_name": name}})
    with pytest.raises(
        UserError, match=rf"b\.pt: refused, for its {part} is {name}, which .* {VARIABLE}"
    ):
        checkpoint_utils.load_checkpoint_to_cpu(file)
    old = {"arch": "diet_rel_tiny", "task": "translation"}
    old |= {"arch" if part == "model" else part: name}
    with pytest.raises(UserError, match=f"its {part} is {name}"):
        checkpoint_utils.load_checkpoint_to_cpu(saved(tmp_path / "old.pt", args=old))
    monkeypatch.setenv(VARIABLE, f"another,{name}")
    assert checkpoint_utils.load_checkpoint_to_cpu(file)


@pytest.mark.parametrize(
    ("section", "content", "what"),
    [
        # fairseq takes what a task calls its task before its name.
        ("task", {"_name": "translation", "task": "speech_to_text"}, "task is speech_to_text"),
        ("model", {"wav2vec_ctc": {"w2v_path": "x.pt"}}, "model is wav2vec_ctc"),
        ("model", {"_name": None, "fconv": {}}, "model is fconv"),
        ("model", {"_name": "diet_rel_tiny", "arch": "lstm"}, "model is lstm"),
        ("model", Namespace(arch="lstm", task="translation"), "model is lstm"),
        ("model", {"dropout": 0.1, "layers": 2}, "model is dropout"),
        ("criterion", Namespace(_name="cross_entropy", criterion="ctc"), "criterion is ctc"),
        ("optimizer", {"composite": {}}, "optimizer is composite"),
        ("lr_scheduler", {"_name": "fixed", "lr_scheduler": "manual"}, "lr_scheduler is manual"),
        ("bpe", {"gpt2": {"gpt2_encoder_json": "x"}}, "bpe is gpt2"),
        ("tokenizer", "nltk", "tokenizer is nltk"),
        ("task", {"_name": "translation", "eval_bleu_detok": "nltk"}, "tokenizer is nltk"),
        (
            "model",
            {"_name": "diet_rel_tiny", "w2v_args": {"model": {"_name": "wav2vec2"}}},
            "model is wav2vec2",
        ),
        (
            "model",
            {"_name": "diet_rel_tiny", "w2v_args": Namespace(task="audio_pretraining")},
            "task is audio_pretraining",
        ),
    ],
)
def test_every_name_that_fairseq_would_take_is_looked_at(
    section: str, content: Any, what: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"d\.pt: refused, for its {what}"):
        checkpoint_utils.load_checkpoint_to_cpu(saved(tmp_path / "d.pt", **{section: content}))


def test_a_section_of_fairseqs_old_form_is_taken(tmp_path: Path) -> None:
    """It holds all options of the training."""
    old = Namespace(arch="transformer", task="translation", criterion="cross_entropy", bpe=None)
    whole = {"model": old, "task": old, "criterion": old, "bpe": {"_name": None}}
    assert checkpoint_utils.load_checkpoint_to_cpu(saved(tmp_path / "e.pt", **whole))


def test_a_data_set_that_runs_a_shell_is_refused(tmp_path: Path) -> None:
    for section in ("task", "dataset"):
        changes = {section: {"_name": "translation", "dataset_impl": "fasta"}}
        with pytest.raises(UserError, match="its dataset_impl is fasta"):
            checkpoint_utils.load_checkpoint_to_cpu(saved(tmp_path / "c.pt", **changes))
