"""Masked words, then sentence pairs, by fairseq's own commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from .encoders import HEAD, PAIRS, RECIPE, RESET, SIZE, Encoders
from .test_bad_input import assert_one_line
from .test_resume import assert_same_ending, same, state
from .transcript import losses, measured_loss, valid_losses
from .workshop import USER_DIR

SEGMENTS = "encoder.sentence_encoder.segment_positions."


def test_a_pretraining_that_stops_goes_on_as_if_it_had_not(
    encoders: Encoders, tmp_path: Path
) -> None:
    """Bit for bit: losses, weights and the optimizer's state. Segments: the fine-tuning below."""
    encoding = "linformer"
    options = ("--segment-encoding", "input", "--num-workers", 1)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    at_once = encoders.pretrain(encoding, whole, *options, "--max-epoch", 2).ok()
    encoders.pretrain(encoding, parts, *options, "--max-epoch", 1).ok()
    rest = encoders.pretrain(encoding, parts, *options, "--max-epoch", 2).ok()
    updates = max(losses(at_once.stdout)) // 2
    assert_same_ending((whole, at_once.stdout), (parts, rest.stdout), updates=updates)


def test_masked_words_with_fairseqs_defaults(encoders: Encoders, tmp_path: Path) -> None:
    """Blocks of 1,024 tokens; the model is built for them, and stays so where it is restored."""
    arch = "roberta_diet_rel_tiny"
    task = (*USER_DIR, "--task", "masked_lm", "--criterion", "masked_lm", "--batch-size", 2)
    options = (*task, *SIZE, *RECIPE, "--arch", arch, "--save-dir", tmp_path)
    encoders.run("train", encoders.vocabulary, *options, "--max-update", 1).ok()
    encoders.run("train", encoders.vocabulary, *options, "--max-update", 2).ok()
    saved = state(tmp_path)
    assert saved["cfg"]["model"]["max_source_positions"] == 1024
    tables = [x for name, x in saved["model"].items() if name.endswith("by_offset")]
    assert [table.size(1) for table in tables] == [2 * 1024 - 1] * 2
    path = ("--path", tmp_path / "checkpoint_last.pt")
    shorter = ("--tokens-per-sample", 100)
    encoders.run("validate", encoders.vocabulary, *task, *path, *shorter).ok()


def test_fine_tuning_adds_segments_to_a_pretrained_checkpoint(encoders: Encoders) -> None:
    """``--restore-file`` with ``--segment-encoding per-head``: from zero, and they learn."""
    before = state(encoders.pretrained("diet-rel"))
    folder = encoders.finetuned("diet-rel")
    after = state(folder)
    assert not [name for name in before["model"] if name.startswith(SEGMENTS)]
    log = (folder / "log").read_text(encoding="utf-8")
    assert "the checkpoint has no segments: --segment-encoding per-head starts at zero" in log
    tables = {name: x for name, x in after["model"].items() if name.startswith(SEGMENTS)}
    assert [tuple(table.shape) for table in tables.values()] == [(2, 2, 2)] * 2
    for table in tables.values():
        assert table.any()
        assert table.abs().max() < 0.2, "30 updates from zero"
    found = losses(log)
    assert float(found[30]) < float(found[1])


def test_a_fine_tuning_that_stops_goes_on_as_if_it_had_not(
    encoders: Encoders, tmp_path: Path
) -> None:
    """``--finetune-from-model`` starts from the pretrained checkpoint once, and then from its own,
    whose segments must all be there.
    """
    start = ("--finetune-from-model", encoders.pretrained("diet-rel") / "checkpoint_last.pt")
    options = (*start, "--segment-encoding", "per-head", "--num-workers", 1)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    at_once = encoders.finetune("diet-rel", whole, *options, "--max-epoch", 2).ok()
    encoders.finetune("diet-rel", parts, *options, "--max-epoch", 1).ok()
    rest = encoders.finetune("diet-rel", parts, *options, "--max-epoch", 2).ok()
    updates = max(losses(at_once.stdout)) // 2
    assert_same_ending((whole, at_once.stdout), (parts, rest.stdout), updates=updates)
    assert "has no segments" not in rest.stdout + rest.stderr


def test_validation_of_a_fine_tuned_model(encoders: Encoders) -> None:
    """In a new process, built from the options in the checkpoint."""
    checkpoint = encoders.finetuned("diet-rel") / "checkpoint_last.pt"
    options = (*USER_DIR, *PAIRS, "--log-format", "json", "--path", checkpoint)
    measured = measured_loss(
        encoders.run("validate", encoders.pairs, *options).ok().stdout, "valid"
    )
    log = (encoders.finetuned("diet-rel") / "log").read_text(encoding="utf-8")
    assert measured == valid_losses(log)[30]


@pytest.mark.parametrize(
    ("encoding", "options", "fragments"),
    [
        ("t5", (), ("'diet-rel sharing=none", "'t5 sharing=layer-wise")),
        ("diet-rel", ("--max-positions", 99), ("--max-positions 99", "built for 64 tokens")),
        ("diet-rel", ("--shorten-method", "random_crop"), ("random_crop", "use truncate")),
    ],
)
def test_what_cannot_be_fine_tuned(
    encoders: Encoders,
    tmp_path: Path,
    encoding: str,
    options: tuple[Any, ...],
    fragments: tuple[str, ...],
) -> None:
    start = ("--restore-file", encoders.pretrained("diet-rel") / "checkpoint_last.pt", *RESET)
    saved = tmp_path / "saved"
    done = encoders.finetune(encoding, saved, *start, *options, "--max-update", 1)
    assert_one_line(done, *fragments)
    assert not list(saved.glob("*.pt"))


def test_a_fine_tuned_checkpoint_of_other_segments(encoders: Encoders, tmp_path: Path) -> None:
    start = ("--restore-file", encoders.finetuned("diet-rel") / "checkpoint_last.pt", *RESET)
    done = encoders.finetune("diet-rel", tmp_path, *start, "--max-update", 1)
    assert_one_line(done, "trained with --segment-encoding per-head, this model has none")


def test_the_head_of_a_checkpoint_is_read_back(encoders: Encoders, tmp_path: Path) -> None:
    """And only what is trained further changes: with a rate of 0, nothing."""
    folder = encoders.finetuned("diet-rel")
    start = ("--restore-file", folder / "checkpoint_last.pt", *RESET)
    still = ("--segment-encoding", "per-head", "--lr", 0, "--max-update", 1, "--dropout", 0.0)
    encoders.finetune("diet-rel", tmp_path, *start, *still).ok()
    before, after = state(folder)["model"], state(tmp_path)["model"]
    assert any(HEAD in name for name in before)
    assert same(before, after)
    assert all(torch.isfinite(tensor).all() for tensor in after.values())
