"""A checkpoint that names what could run code is refused before anything of it is built."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import data_utils
from fairseq.data.encoders import BPE_REGISTRY, TOKENIZER_REGISTRY
from fairseq.models import MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

from diet_mt.errors import UserError
from diet_mt.fairseq_patches.named_parts import ALLOWED, VARIABLE, names_in, refusal

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
# Left out, for the reasons in docs/security.md.
SPEECH = ("speech", "audio", "s2", "wav2vec", "hubert", "tts", "text_to_speech", "unit", "tacotron")
OUT = {
    "model": "transformer_from_pretrained_xlm roberta_enc_dec fconv_self_att hf_gpt2 "
    "model_parallel_transformer model_parallel_transformer_lm model_parallel_roberta "
    "pipeline_parallel_transformer dummy_model transformer_ulm CodeHiFiGANVocoder convtransformer "
    "fastspeech2 xm_transformer",
    "task": "simul_text_to_text nlu_finetuning dummy_lm dummy_masked_lm dummy_mt",
    "criterion": "ctc composite_loss vocab_parallel_cross_entropy fastspeech2",
}
# All of fairseq's are harmless, and none is refused.
HARMLESS = {
    "bpe": "byte_bpe bytes characters fastbpe gpt2 bert hf_byte_bpe sentencepiece subword_nmt",
    "tokenizer": "moses nltk space",
}


REGISTERED = {"model": MODEL_REGISTRY, "task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}
REGISTERED |= {"bpe": BPE_REGISTRY, "tokenizer": TOKENIZER_REGISTRY}


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


@pytest.mark.parametrize("part", REGISTERED)
def test_every_part_of_fairseq_was_read(part: str) -> None:
    read = {*ALLOWED.get(part, ()), *OUT.get(part, "").split(), *HARMLESS.get(part, "").split()}
    for name, owner in REGISTERED[part].items():
        speech = any(word in name for word in SPEECH)
        assert name in read or speech or not owner.__module__.startswith("fairseq."), name


def test_what_our_trainings_name_is_taken(tmp_path: Path) -> None:
    file = saved(tmp_path / "a.pt")
    assert checkpoint_utils.load_checkpoint_to_cpu(file)["cfg"].model._name == "diet_rel_tiny"
    for arch in ("transformer_iwslt_de_en", "lstm_luong_wmt_en_de", "roberta_diet_abs_tiny"):
        assert refusal("model", arch) is None
    for part, name in (*names_in({"cfg": OURS}), ("criterion", "extractive_qa")):
        assert refusal(part, name) is None, (part, name)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        *(("model", name) for name in ("wav2vec2", "roberta_enc_dec", "no_such_model")),
        *(("task", name) for name in ("audio_pretraining", "speech_to_text", "no_such_task")),
        *(("criterion", name) for name in ("ctc", "composite_loss", "no_such_criterion")),
    ],
)
def test_all_else_is_refused(
    part: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(tmp_path / "b.pt", **{part: {"_name": name}})
    with pytest.raises(UserError, match=rf"b\.pt: .*{part} {name};.* {VARIABLE}={name}"):
        checkpoint_utils.load_checkpoint_to_cpu(file)
    old = {"arch": "diet_rel_tiny", "task": "translation"}
    old |= {"arch" if part == "model" else part: name}
    with pytest.raises(UserError, match=f"{part} {name};"):
        checkpoint_utils.load_checkpoint_to_cpu(saved(tmp_path / "old.pt", args=old))
    monkeypatch.setenv(VARIABLE, f"another,{name}")
    assert checkpoint_utils.load_checkpoint_to_cpu(file)


@pytest.mark.parametrize(
    ("section", "content", "what"),
    [
        # fairseq takes what a task calls its task before its name.
        ("task", {"_name": "translation", "task": "speech_to_text"}, "task speech_to_text"),
        ("model", {"wav2vec_ctc": {"w2v_path": "x.pt"}}, "model wav2vec_ctc"),
        ("model", {"_name": None, "hubert": {}}, "model hubert"),
        ("model", {"_name": "diet_rel_tiny", "arch": "hubert"}, "model hubert"),
        ("model", Namespace(arch="hubert", task="translation"), "model hubert"),
        ("model", {"dropout": 0.1, "layers": 2}, "model dropout"),
        ("criterion", Namespace(_name="cross_entropy", criterion="ctc"), "criterion ctc"),
        (
            "model",
            {"_name": "diet_rel_tiny", "w2v_args": {"model": {"_name": "wav2vec2"}}},
            "model wav2vec2",
        ),
        (
            "model",
            {"_name": "diet_rel_tiny", "w2v_args": Namespace(task="audio_pretraining")},
            "task audio_pretraining",
        ),
    ],
)
def test_every_name_that_fairseq_would_take_is_looked_at(
    section: str, content: Any, what: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"d\.pt: .*{what};"):
        checkpoint_utils.load_checkpoint_to_cpu(saved(tmp_path / "d.pt", **{section: content}))


def test_a_section_of_fairseqs_old_form_is_taken(tmp_path: Path) -> None:
    """It holds all options of the training."""
    old = Namespace(arch="transformer", task="translation", criterion="cross_entropy", bpe=None)
    whole = {"model": old, "task": old, "criterion": old, "bpe": {"_name": None}}
    assert checkpoint_utils.load_checkpoint_to_cpu(saved(tmp_path / "e.pt", **whole))


@pytest.mark.parametrize("kind", [dict, Namespace])
def test_no_criterion_of_a_checkpoint_writes_a_file(kind: Any, tmp_path: Path) -> None:
    """fairseq-validate builds it, and this one opens its file for writing."""
    ranking = kind(_name="sentence_ranking", save_predictions="precious")
    file = saved(tmp_path / "f.pt", criterion=ranking)
    loaded = checkpoint_utils.load_checkpoint_to_cpu(file)["cfg"].criterion
    assert loaded.save_predictions is None


def test_no_shell_runs_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq indexes FASTA by a shell command with the path of the data, as it was found."""
    monkeypatch.chdir(tmp_path)
    Path("train.a-$(touch ran).a.fasta").write_text(">\nA\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"touch ran"):
        data_utils.load_indexed_dataset("train.a-$(touch ran).a")
    assert not Path("ran").exists()
