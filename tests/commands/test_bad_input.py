"""Bad input of fairseq's commands ends in one line that names it, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from .encoders import RESET, Encoders
from .runner import Done
from .workshop import (
    LANGUAGES,
    MAX_SOURCE,
    USER_DIR,
    Workshop,
    architecture,
    state,
    texts,
    translations,
    write_lines,
)

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


def files(folder: Path) -> dict[str, bytes]:
    if not folder.exists():
        return {}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused_training(workshop: Workshop, arch: str, saved: Path, *options: Any) -> Done:
    """A training that must not begin; what is in the folder ``saved`` stays as it is."""
    before = files(saved)
    name = architecture(arch)
    where = (*workshop.training(), "--arch", name, "--save-dir", saved, "--max-update", 2)
    done = workshop.run("train", workshop.bin, *where, *options)
    assert files(saved) == before
    return done


# Encoding of the training, its options with {ENCODING} for the checkpoint of a trained one, and
# what the line names. More, within one process: tests/models/test_options.py.
TRAININGS: list[tuple[str, tuple[Any, ...], tuple[str, ...]]] = [
    ("none", ("--encoder-embed-dim", 16), ("--share-all-embeddings",)),
    ("rotary", ("--restore-file", "{none}"), ("'none", "'rotary")),  # the same shapes
    (
        "diet-rel",
        ("--restore-file", "{diet-rel}", "--max-source-positions", 50),
        ("--max-source-positions",),
    ),
    ("diet-rel", ("--finetune-from-model", "nowhere"), ("nowhere", "--finetune-from-model")),
]


@pytest.mark.parametrize(("encoding", "options", "fragments"), TRAININGS)
def test_a_training_that_cannot_begin(
    workshop: Workshop,
    tmp_path: Path,
    encoding: str,
    options: tuple[Any, ...],
    fragments: tuple[str, ...],
) -> None:
    given = [
        workshop.checkpoint(option.strip("{}")) if str(option)[0] == "{" else option
        for option in options
    ]
    assert_one_line(refused_training(workshop, encoding, tmp_path / "saved", *given), *fragments)


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (("--model-overrides", "{'position_encoding': 'diet-abs'}"), ("'diet-rel",)),
        (("--path", "nowhere"), ("nowhere", "--path")),
        (("--path", "."), ("directory",)),
        (("--gen-subset", "tset"), ("tset",)),
        (("--task", "diet_translation", "--length-penalty", "long"), ("--length-penalty long",)),
    ],
)
def test_a_decoding_that_cannot_begin(
    workshop: Workshop, options: tuple[str, ...], fragments: tuple[str, ...]
) -> None:
    done = workshop.generate("diet-rel", *options)
    assert_one_line(done, *fragments)
    assert not translations(done.stdout)


class Bomb:
    """Makes a folder when a loader that is not safe rebuilds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("kept", ["nothing", "half", "text", "torch"])
def test_a_damaged_checkpoint(workshop: Workshop, tmp_path: Path, kept: str) -> None:
    whole = workshop.checkpoint("diet-rel").read_bytes()
    checkpoint = tmp_path / "checkpoint_last.pt"
    if kept == "torch":
        torch.save({"model": {}, "cfg": None}, checkpoint)
    else:
        parts = {"nothing": b"", "half": whole[: len(whole) // 2], "text": b"no checkpoint\n"}
        checkpoint.write_bytes(parts[kept])
    assert_one_line(workshop.generate("diet-rel", "--path", checkpoint), str(checkpoint))
    if kept == "half":
        assert_one_line(refused_training(workshop, "diet-rel", tmp_path), str(checkpoint))


@pytest.mark.parametrize("is_zipped", [True, False], ids=["zip", "legacy"])
def test_a_checkpoint_that_would_run_code(
    workshop: Workshop, tmp_path: Path, is_zipped: bool
) -> None:
    damaged, crater = tmp_path / "damaged", tmp_path / "crater"
    damaged.mkdir()
    checkpoint = damaged / "checkpoint_last.pt"
    content = state(workshop.trained("diet-rel"))
    content["extra_state"]["bomb"] = Bomb(crater)
    torch.save(content, checkpoint, _use_new_zipfile_serialization=is_zipped)
    # An environment variable with which torch loads anything: not here.
    forced = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    for done in (
        workshop.generate("diet-rel", "--path", checkpoint),
        workshop.generate("diet-rel", "--path", checkpoint, env=forced),
        refused_training(workshop, "diet-rel", damaged),
    ):
        assert_one_line(done, "code")
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


@pytest.mark.parametrize("kind", ["missing", "empty"])
def test_a_data_folder_without_data(workshop: Workshop, tmp_path: Path, kind: str) -> None:
    data = tmp_path / "data"
    if kind == "empty":
        data.mkdir()
    fragment = str(data) if kind == "missing" else "fairseq-preprocess"
    arch = ("--arch", "diet_rel_tiny", "--save-dir", tmp_path / "s")
    assert_one_line(workshop.run("train", data, *workshop.training(), *arch), fragment)
    assert_one_line(workshop.generate("diet-rel", data=data), fragment)
    assert not list(tmp_path.glob("s/*"))


def test_vocabularies_of_their_own_do_not_share_embeddings(
    workshop: Workshop, tmp_path: Path
) -> None:
    text = ("--trainpref", workshop.corpus / "train", "--destdir", tmp_path / "apart")
    workshop.run("preprocess", *LANGUAGES, *text).ok()
    options = (*workshop.training(), "--arch", "diet_rel_tiny", "--save-dir", tmp_path / "saved")
    done = workshop.run("train", tmp_path / "apart", *options)
    assert_one_line(done, "--share-all-embeddings", "joined dictionary")


def test_a_source_longer_than_the_tables(workshop: Workshop, tmp_path: Path) -> None:
    """Ten words more than the model has positions: named, or skipped."""
    lines, long = workshop.lines()[:2], " ".join(["bal", "der"] * (MAX_SOURCE // 2 + 5))
    write_lines(tmp_path / "test.src", [lines[0], long, lines[1]])
    write_lines(tmp_path / "test.tgt", ["ONE", "TWO", "SIX"])
    workshop.binarize(tmp_path / "bin", tmp_path, "test", known=True)
    # What generation is told about lengths does not make the tables of the model longer.
    for options in ((), ("--max-source-positions", 1000)):
        done = workshop.generate("diet-rel", *options, data=tmp_path / "bin")
        assert_one_line(done, "#1", f"{MAX_SOURCE}", "--max-source-positions")
    skip = "--skip-invalid-size-inputs-valid-test"
    skipped = workshop.generate("diet-rel", skip, data=tmp_path / "bin").ok()
    assert sorted(translations(skipped.stdout)) == [0, 2]
    assert texts(skipped.stdout) == texts(workshop.decoded("diet-rel"))[:2]
    typed = workshop.interactive("diet-rel", ["bal " * 50])
    assert_one_line(typed, "--max-source-positions")


@pytest.mark.parametrize(
    ("encoding", "start", "options", "fragments"),
    [
        ("t5", "pretrained", (), ("'diet-rel", "'t5")),
        ("diet-rel", "pretrained", ("--max-positions", 99), ("--max-positions 99", "64")),
        ("diet-rel", "pretrained", ("--shorten-method", "random_crop"), ("random_crop",)),
        ("diet-rel", "finetuned", (), ("--segment-encoding per-head",)),
    ],
)
def test_a_fine_tuning_that_cannot_begin(
    encoders: Encoders,
    tmp_path: Path,
    encoding: str,
    start: str,
    options: tuple[Any, ...],
    fragments: tuple[str, ...],
) -> None:
    folder: Path = getattr(encoders, start)("diet-rel")
    given = ("--restore-file", folder / "checkpoint_last.pt", *RESET, *options)
    done = encoders.finetune(encoding, tmp_path / "saved", *given, "--max-update", 1)
    assert_one_line(done, *fragments)
    assert not list(tmp_path.glob("saved/*.pt"))
