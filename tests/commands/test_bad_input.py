"""Bad input ends in one line that says what is wrong and what to do, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from .rescoring import TOLERANCE, load, positional_scores
from .runner import Done
from .test_resume import state
from .transcript import texts, translations
from .workshop import MAX_SOURCE, MAX_TARGET, SEARCH, USER_DIR, Workshop, architecture

pytestmark = pytest.mark.hostile


def assert_one_line(done: Done, *fragments: str) -> None:
    """The command failed with ``error: ...``, once, and that line holds every fragment."""
    assert done.status not in (0, None), done.tail()
    assert done.status > 0, f"ended by signal {-done.status}"
    assert "Traceback" not in done.stderr + done.stdout, done.tail()
    lines = [line for line in done.stderr.split("\n") if line.startswith("error: ")]
    assert len(lines) == 1, done.tail()
    assert len(lines[0]) < 600
    for fragment in fragments:
        assert fragment in lines[0]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused_training(workshop: Workshop, arch: str, saved: Path, *options: Any) -> Done:
    """A training that must not begin; what is in the folder ``saved`` stays as it is."""
    before = files(saved) if saved.exists() else {}
    name = architecture(arch)
    where = (*workshop.training(), "--arch", name, "--save-dir", saved, "--max-update", 2)
    done = workshop.run("train", workshop.bin, *where, *options)
    assert (files(saved) if saved.exists() else {}) == before
    return done


def test_options_that_cannot_be(workshop: Workshop, tmp_path: Path) -> None:
    """All of them, within one process: ``tests/models/test_refused_options.py``."""
    done = refused_training(workshop, "none", tmp_path / "saved", "--encoder-embed-dim", 16)
    assert_one_line(done, "--share-all-embeddings")


def test_an_unknown_architecture_lists_the_known_ones(workshop: Workshop, tmp_path: Path) -> None:
    """fairseq's own message, which argparse ends with the possible choices."""
    done = refused_training(workshop, "no-such", tmp_path / "saved")
    assert done.status == 2
    last = done.stderr.strip().split("\n")[-1]
    assert "invalid choice: 'no_such_tiny'" in last
    assert "diet_rel_tiny" in last
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("trained", "encoding", "options", "fragments"),
    [
        ("none", "rotary", (), ("'none", "'rotary")),  # the same shapes
        ("diet-rel", "diet-rel", ("--max-source-positions", 50), ("--max-source-positions",)),
    ],
)
def test_a_checkpoint_of_another_model_is_not_trained_further(
    workshop: Workshop,
    tmp_path: Path,
    trained: str,
    encoding: str,
    options: tuple[object, ...],
    fragments: tuple[str, ...],
) -> None:
    """All of what the signature tells: ``tests/models/test_signature.py``."""
    restored = ("--restore-file", workshop.checkpoint(trained), *options)
    done = refused_training(workshop, encoding, tmp_path / "saved", *restored)
    assert_one_line(done, "checkpoint", *fragments)


def test_a_checkpoint_does_not_decode_as_another_model(workshop: Workshop) -> None:
    overrides = {"position_encoding": "diet-abs"}
    done = workshop.generate("diet-rel", "--model-overrides", repr(overrides))
    assert_one_line(done, "trained with positions 'diet-rel sharing=none scale=head'")
    assert not translations(done.stdout)


@pytest.fixture
def damaged(workshop: Workshop, tmp_path: Path) -> Path:
    """A folder for a checkpoint_last.pt that is none."""
    folder = tmp_path / "damaged"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("kept", ["nothing", "half", "text"])
def test_a_damaged_checkpoint(workshop: Workshop, damaged: Path, kept: str) -> None:
    whole = workshop.checkpoint("diet-rel").read_bytes()
    kinds = {"nothing": b"", "half": whole[: len(whole) // 2], "text": b"this is no checkpoint\n"}
    checkpoint = damaged / "checkpoint_last.pt"
    checkpoint.write_bytes(kinds[kept])
    done = workshop.generate("diet-rel", "--path", checkpoint)
    assert_one_line(done, str(checkpoint), "not a checkpoint")
    if kept == "half":
        resumed = refused_training(workshop, "diet-rel", damaged)
        assert_one_line(resumed, str(checkpoint), "not a checkpoint")


def test_a_file_of_torch_that_is_no_checkpoint(workshop: Workshop, damaged: Path) -> None:
    content = {"model": {}, "cfg": None}
    checkpoint = damaged / "checkpoint_last.pt"
    torch.save(content, checkpoint)
    assert_one_line(
        workshop.generate("diet-rel", "--path", checkpoint), str(checkpoint), "not a checkpoint"
    )


class Bomb:
    """Makes a folder when a loader that is not safe rebuilds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_a_checkpoint_that_would_run_code(
    workshop: Workshop, damaged: Path, tmp_path: Path, zipped: bool
) -> None:
    checkpoint, crater = damaged / "checkpoint_last.pt", tmp_path / "crater"
    content = state(workshop.trained("diet-rel"))
    content["extra_state"]["bomb"] = Bomb(crater)
    torch.save(content, checkpoint, _use_new_zipfile_serialization=zipped)
    for done in (
        workshop.generate("diet-rel", "--path", checkpoint),
        refused_training(workshop, "diet-rel", damaged),
        # Set by those who want torch to load anything: not here.
        workshop.generate(
            "diet-rel", "--path", checkpoint, env={"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
        ),
    ):
        assert_one_line(done, "code")
        assert not crater.exists()
    state(damaged)
    assert crater.exists()  # it was no dud


def test_paths_that_are_not_there(workshop: Workshop, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert_one_line(workshop.generate("diet-rel", "--path", nowhere), str(nowhere), "--path")
    assert_one_line(workshop.generate("diet-rel", "--path", tmp_path), str(tmp_path), "directory")
    assert_one_line(workshop.generate("diet-rel", "--gen-subset", "tset"), "tset", "subset")
    tuned = refused_training(
        workshop, "diet-rel", tmp_path / "saved", "--finetune-from-model", nowhere
    )
    assert_one_line(tuned, str(nowhere), "--finetune-from-model")


def test_folders_whose_names_are_not_utf8(workshop: Workshop, tmp_path: Path) -> None:
    """Of the plugin and of a checkpoint."""
    folder = tmp_path / os.fsdecode(b"f\xe9\xff")
    folder.mkdir()
    (folder / "plugin").symlink_to(USER_DIR[1])
    shutil.copy(workshop.checkpoint("diet-rel"), folder / "x.pt")
    where = ("--user-dir", folder / "plugin", "--path", folder / "x.pt", *SEARCH)
    done = workshop.run("generate", workshop.bin, *where).ok()
    assert texts(done.stdout) == texts(workshop.decoded("diet-rel"))
    gone = ("--user-dir", folder / "plugin", "--path", folder / "gone.pt")
    assert_one_line(workshop.run("generate", workshop.bin, *gone), r"f\udce9\udcff/gone.pt")


@pytest.mark.parametrize("kind", ["missing", "empty"])
def test_a_data_folder_without_data(workshop: Workshop, tmp_path: Path, kind: str) -> None:
    data = tmp_path / "data"
    if kind == "empty":
        data.mkdir()
    fragment = str(data) if kind == "missing" else "fairseq-preprocess"
    path = ("--path", workshop.checkpoint("diet-rel"), *USER_DIR)
    trained = workshop.run(
        "train", data, *workshop.training(), "--arch", "diet_rel_tiny", "--save-dir", tmp_path / "s"
    )
    typed = workshop.run("interactive", data, *path, stdin="bal\n")
    for done in (trained, workshop.run("generate", data, *path), typed):
        assert_one_line(done, fragment)
    assert not list(tmp_path.glob("s/*"))


def test_vocabularies_of_their_own_do_not_share_embeddings(
    workshop: Workshop, tmp_path: Path
) -> None:
    languages = ("--source-lang", "src", "--target-lang", "tgt")
    text = ("--trainpref", workshop.corpus / "train", "--destdir", tmp_path / "apart")
    workshop.run("preprocess", languages, text).ok()
    options = (*workshop.training(), "--arch", "diet_rel_tiny", "--save-dir", tmp_path / "saved")
    done = workshop.run("train", tmp_path / "apart", *options)
    assert_one_line(done, "--share-all-embeddings", "joined dictionary")


@pytest.fixture(scope="module")
def long_bin(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three test sentences; the second has ten words more than the model has positions."""
    folder = tmp_path_factory.mktemp("long")
    lines = workshop.lines()[:2]
    long = " ".join(["bal", "der"] * (MAX_SOURCE // 2 + 5))
    sources = [lines[0], long, lines[1]]
    (folder / "test.src").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    (folder / "test.tgt").write_text("ONE\nTWO\nSIX\n", encoding="utf-8")
    dictionary = workshop.bin / "dict.src.txt"
    languages = ("--source-lang", "src", "--target-lang", "tgt")
    dictionaries = ("--srcdict", dictionary, "--joined-dictionary")
    where = ("--testpref", folder / "test", "--destdir", folder / "bin")
    workshop.run("preprocess", languages, dictionaries, where).ok()
    return folder / "bin"


def test_a_source_longer_than_the_tables(workshop: Workshop, long_bin: Path) -> None:
    encoding = "diet-rel"
    path = ("--path", workshop.checkpoint(encoding), *USER_DIR, *SEARCH)
    # What generation is told about lengths does not make the tables of the model longer.
    for options in ((), ("--max-source-positions", 1000)):
        done = workshop.run("generate", long_bin, *path, *options)
        assert_one_line(done, "#1", f"{MAX_SOURCE}", "--max-source-positions")
    skip = "--skip-invalid-size-inputs-valid-test"
    skipped = workshop.run("generate", long_bin, *path, skip).ok()
    found = translations(skipped.stdout)
    assert sorted(found) == [0, 2]
    assert texts(skipped.stdout) == texts(workshop.decoded(encoding))[:2]
    typed = workshop.run("interactive", workshop.bin, *path, stdin="bal " * 50 + "\n")
    assert_one_line(typed, "--max-source-positions")


def test_generation_ends_where_the_tables_end(workshop: Workshop) -> None:
    """--max-len-b beyond --max-target-positions of the training, and no end wanted before."""
    encoding = "diet-rel"
    wanted = ("--min-len", MAX_TARGET - 3, "--max-len-b", 500, "--beam", 4)
    found = translations(workshop.generate(encoding, *wanted).ok().stdout)
    lengths = {len(one.positional[0]) for one in found.values()}
    assert len(found) == len(workshop.lines())
    assert max(lengths) <= MAX_TARGET
    assert min(lengths) > MAX_TARGET - 3
    models, task = load(workshop.checkpoint(encoding))
    for number in range(0, len(found), 9):
        one, source = found[number], workshop.lines()[number]
        expected = positional_scores(models, task, source, one.texts[0])
        assert one.positional[0] == pytest.approx(expected, abs=TOLERANCE)


def test_the_traceback_is_there_for_who_asks(workshop: Workshop, tmp_path: Path) -> None:
    wrong = ("--position-rank", 0, "--save-dir", tmp_path)
    env = {"DIET_MT_TRACEBACK": "1"}
    done = workshop.train("diet-abs", tmp_path, *wrong, env=env)
    assert re.search(r"^Traceback ", done.stderr, re.MULTILINE)
    assert done.stderr.strip().split("\n")[-1].startswith("error: --position-rank 0")


def test_other_faults_are_shown_as_python_shows_them(workshop: Workshop, tmp_path: Path) -> None:
    """A line without its traceback would hide a defect of fairseq or of ours."""
    script = tmp_path / "defect.py"
    root = str(Path(USER_DIR[1]).parent)
    code = f"import sys\nsys.path.insert(0, {root!r})\nimport diet_mt.plugin\n[][0]\n"
    script.write_text(code, encoding="utf-8")
    done = workshop.run(str(script))
    assert done.status == 1
    assert "Traceback" in done.stderr
    assert "IndexError" in done.stderr
    assert "error: " not in done.stderr.replace("IndexError: ", "")
