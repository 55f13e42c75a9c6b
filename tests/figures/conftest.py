"""A corpus and checkpoints whose position tables hold numbers that can be seen."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from fairseq.tasks import setup_task

from diet_mt.positions import AttentionPositions, InputPositions, SegmentPositions

from ..checkpoints import config_of, state_of
from ..commands.runner import Runner
from ..toy import parameters_of

LINES = {"en": "a red dog saw the old cat", "de": "ein roter Hund sah die alte Katze dort"}


@pytest.fixture(scope="session")
def corpus(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Binarized: en-de with a split valid, and in masked/ its English side alone."""
    raw = tmp_path_factory.mktemp("raw")
    data = raw / "bin"
    for language, line in LINES.items():
        words = line.split()
        lines = [" ".join(words[n % 3 :] + words[: n % 2]) for n in range(20)]
        for split in ("train", "valid"):
            (raw / f"{split}.{language}").write_text("".join(f"{text}\n" for text in lines))
    command = ["-s", "en", "-t", "de", "--joined-dictionary", "--destdir", str(data)]
    command += ["--trainpref", str(raw / "train"), "--validpref", str(raw / "valid")]
    runner("preprocess", command).ok()
    masked = data / "masked"
    masked.mkdir()
    shutil.copy(data / "dict.en.txt", masked / "dict.txt")
    for split in ("train", "valid"):
        for kind in ("bin", "idx"):
            shutil.copy(data / f"{split}.en-de.en.{kind}", masked / f"{split}.{kind}")
    return data


@pytest.fixture(scope="session")
def checkpoint(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes what a training leaves, once: ``checkpoint(arch, *options)`` -> its folder."""

    @cache
    def write(arch: str, *options: str) -> Path:
        encoder_only = arch.startswith("roberta")
        words = [str(corpus / "masked" if encoder_only else corpus), "--arch", arch, *options]
        words += ["--task", "masked_lm"] if encoder_only else ["--share-all-embeddings"]
        cfg = config_of(*words)
        model = setup_task(cfg.task).build_model(cfg.model)
        torch.manual_seed(1)
        kinds = (AttentionPositions, InputPositions, SegmentPositions)
        for table in parameters_of(model, *kinds).values():
            torch.nn.init.normal_(table, std=0.5)
        folder = tmp_path_factory.mktemp("trained") / arch.rpartition("_")[0]
        folder.mkdir()
        torch.save(state_of(cfg, model), folder / "checkpoint_best.pt")
        return folder

    return write


def saved(folder: Path) -> dict[str, torch.Tensor]:
    """The parameters of a checkpoint, by their names."""
    state: dict[str, torch.Tensor] = torch.load(folder / "checkpoint_best.pt")["model"]
    return state
