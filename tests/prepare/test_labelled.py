"""GLUE and XNLI from their official files to fairseq's form, on made-up rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.tokenizer import WORDPIECE

from ..bert.made_glue import SIZES, write_glue, write_xnli
from .conftest import Once
from .running import killed, only_error, prepare, sentences_in, stages_of, state, texts


@pytest.fixture(scope="module")
def official(once: Once) -> Path:
    """The folders glue and xnli."""

    def fill(folder: Path) -> None:
        write_glue(folder / "glue")
        write_xnli(folder / "xnli")

    return once("glue", fill)


def test_pairs_with_two_test_sets(official: Path, vocabulary: Path, tmp_path: Path) -> None:
    out = tmp_path / "with a space"
    given = ("--from", official / "glue", "--vocab", vocabulary, "--out", out, "--workers", 1)
    words = ("glue", "MNLI", *given, "--max-length", 30)
    said = prepare(*words).ok()
    stages = ["raw", "pieces", "input0", "input1", "label", WORDPIECE]
    assert stages_of(out) == stages
    for split, rows in (("train", "train"), ("valid1", "dev"), ("test1", "test")):
        assert f"{split}, input1: {SIZES[rows]}, expected {SIZES[rows]}" in said
    raw = (out / "raw" / "valid1.label").read_text(encoding="utf-8").split("\n")[:-1]
    assert sentences_in(out / "label" / "valid1") == raw
    assert (out / "label" / "dict.txt").read_text() == (out / "raw" / "labels.txt").read_text()
    pieces = (out / "pieces" / "test.input0").read_text(encoding="utf-8").split("\n")[:-1]
    assert sentences_in(out / "input0" / "test") == pieces
    assert (out / WORDPIECE).read_bytes() == (vocabulary / WORDPIECE).read_bytes()
    assert not (out / "label" / "test.idx").exists()
    before = state(out)
    assert prepare(*words).ok().count("done before") == len(stages)
    assert state(out) == before
    message = only_error(prepare("glue", "MNLI", *given))
    assert "was made with --max-length 30, not --max-length 128" in message

    # Killed in every stage and continued, by two processes: the same data.
    other = tmp_path / "other"
    again = [other if word == out else word for word in words]
    for event, end in (
        ("os.rename", "raw.part/valid1.input1.part"),
        ("os.rename", "pieces.part/train.input0.part"),
        ("open", "input0.part/test1.bin"),
        ("os.rename", "input1.part/test2.idx"),
        ("open", "label.part/dict.txt"),
        ("os.rename", f"{WORDPIECE}.part.part"),
    ):
        killed(event, end, *again)
    prepare(*again, "--workers", 2).ok()
    assert stages_of(other) == stages
    assert texts(other) == texts(out)


def test_scores_stay_text(official: Path, vocabulary: Path, tmp_path: Path) -> None:
    given = ("--from", official / "glue", "--vocab", vocabulary, "--out", tmp_path / "STS-B")
    said = prepare("glue", "STS-B", *given, "--workers", 1).ok()
    scores = (tmp_path / "STS-B" / "label" / "valid.label").read_text(encoding="utf-8")
    assert scores.split("\n")[:2] == ["4.75", "0.5"]
    assert f"valid, label: {SIZES['dev']}, expected {SIZES['dev']}" in said


def test_all_tasks_of_glue(official: Path, vocabulary: Path, tmp_path: Path) -> None:
    given = ("--from", official / "glue", "--vocab", vocabulary, "--out", tmp_path / "glue")
    found = prepare("glue", "all", *given, "--dry-run")
    assert (found.status, found.err) == (0, "")
    folders = [line for line in found.out.split("\n") if line.startswith(str(tmp_path))]
    assert len(folders) == 9
    assert folders[0].startswith(f"{tmp_path}/glue/CoLA: CoLA MAX_LENGTH=128 BAD_ROWS=refuse ")
    assert not (tmp_path / "glue").exists()


def test_xnli(official: Path, vocabulary: Path, tmp_path: Path) -> None:
    out = tmp_path / "XNLI"
    given = ("--from", official / "xnli", "--mnli", official / "glue", "--vocab", vocabulary)
    prepare("xnli", *given, "--out", out, "--workers", 1).ok()
    names = {path.stem for path in (out / "label").glob("*.idx")}
    assert names == {"train", "valid_en", "valid_sw", "test_en", "test_sw"}
    assert sentences_in(out / "label" / "test_sw")[:2] == ["contradiction", "neutral"]
