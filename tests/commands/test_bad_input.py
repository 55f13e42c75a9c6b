"""Bad input of fairseq's commands ends in one line that names it, and leaves nothing behind.

More, within one process: tests/fairseq_patches/, tests/models/test_options.py.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from .runner import Done
from .workshop import MAX_SOURCE, USER_DIR, Workshop, state, texts, translations

pytestmark = pytest.mark.hostile


def assert_one_line(done: Done, *fragments: str) -> None:
    """The command failed with ``error: ...``, once, and that line holds every fragment."""
    assert done.status > 0, done.tail()
    assert "Traceback" not in done.stderr + done.stdout, done.tail()
    lines = [line for line in done.stderr.split("\n") if line.startswith("error: ")]
    assert len(lines) == 1, done.tail()
    assert len(lines[0]) < 600
    for fragment in fragments:
        assert fragment in lines[0]


def refused_training(workshop: Workshop, saved: Path) -> Done:
    """A training that must not begin; what is in the folder ``saved`` stays as it is."""
    before = {path: path.read_bytes() for path in saved.glob("*.pt")}
    done = workshop.train("diet-rel", saved, "--max-update", 2)
    assert {path: path.read_bytes() for path in saved.glob("*.pt")} == before
    return done


class Bomb:
    """Makes a folder when a loader that is not safe rebuilds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.folder,)


def test_half_a_checkpoint(workshop: Workshop, tmp_path: Path) -> None:
    whole, checkpoint = workshop.checkpoint("diet-rel"), tmp_path / "checkpoint_last.pt"
    checkpoint.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    assert_one_line(workshop.generate("diet-rel", "--path", checkpoint), str(checkpoint))
    assert_one_line(refused_training(workshop, tmp_path), str(checkpoint))


def test_a_checkpoint_that_would_run_code(workshop: Workshop, tmp_path: Path) -> None:
    """Saved in torch's format, and in its old one."""
    damaged, crater = tmp_path / "damaged", tmp_path / "crater"
    damaged.mkdir()
    checkpoint = damaged / "checkpoint_last.pt"
    content = state(workshop.trained("diet-rel"))
    content["extra_state"]["bomb"] = Bomb(crater)
    # An environment variable with which torch loads anything: not here.
    forced = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    for is_zipped in (False, True):
        torch.save(content, checkpoint, _use_new_zipfile_serialization=is_zipped)
        assert_one_line(workshop.generate("diet-rel", "--path", checkpoint, env=forced), "code")
        assert not crater.exists()
    assert_one_line(refused_training(workshop, damaged), "code")
    assert not crater.exists()
    state(damaged)
    assert crater.exists()  # it was no dud


def test_folders_whose_names_are_not_utf8(workshop: Workshop, tmp_path: Path) -> None:
    """Of the plugin and of a checkpoint."""
    folder = tmp_path / os.fsdecode(b"f\xe9\xff")
    folder.mkdir()
    (folder / "plugin").symlink_to(USER_DIR[1])
    shutil.copy(workshop.checkpoint("diet-rel"), folder / "x.pt")
    plugin = ("--user-dir", folder / "plugin")
    done = workshop.generate("diet-rel", *plugin, "--path", folder / "x.pt").ok()
    assert texts(done.stdout) == texts(workshop.decoded("diet-rel"))
    gone = workshop.generate("diet-rel", *plugin, "--path", folder / "gone.pt")
    assert_one_line(gone, r"f\udce9\udcff/gone.pt")


def test_a_source_longer_than_the_tables(workshop: Workshop) -> None:
    """Named, or skipped."""
    # The length given to generation does not make the tables of the model longer.
    done = workshop.generate("diet-rel", "--max-source-positions", 1000, data=workshop.long)
    assert_one_line(done, "#1", f"{MAX_SOURCE}", "--max-source-positions")
    skip = "--skip-invalid-size-inputs-valid-test"
    skipped = workshop.generate("diet-rel", skip, data=workshop.long).ok()
    assert sorted(translations(skipped.stdout)) == [0, 2]
    assert texts(skipped.stdout) == texts(workshop.decoded("diet-rel"))[:2]
    assert_one_line(workshop.interactive("diet-rel", ["bal " * 50]), "--max-source-positions")
