"""GLUE's files: made-up ones of the official layout, the real ones where they are, and bad rows."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from diet_mt.bert.glue import TASKS, read_file, task_named, write
from diet_mt.bert.labelled import SKIP, Example
from diet_mt.errors import UserError

from .made_glue import QUOTED, SIZES, write_glue

# Task -> rows of each of its files, as the README of the real data has them.
ROWS = {
    "CoLA": (8551, 1043, 1063),
    "SST-2": (67349, 872, 1821),
    "MRPC": (3668, 408, 1725),
    "RTE": (2490, 277, 3000),
    "STS-B": (5749, 1500, 1379),
    "WNLI": (635, 71, 146),
    "QNLI": (4854, 609, 1000),
    "QQP": (10000, 2000, 1000),
    "MNLI": (744, 200, 826, 56, 174),
}
REAL = os.environ.get("DIET_MT_DATA")


@pytest.fixture(scope="module")
def glue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_glue(tmp_path_factory.mktemp("glue"))


def read(folder: Path, task: str, split: str, **how: str) -> list[Example]:
    return list(read_file(folder, TASKS[task], split, **how))


def test_every_task_has_its_official_files() -> None:
    assert TASKS.keys() == ROWS.keys()


@pytest.mark.skipif(REAL is None, reason="DIET_MT_DATA, the folder of the real data, is not set")
@pytest.mark.parametrize("task", ROWS)
def test_the_real_files_have_their_rows(task: str) -> None:
    assert REAL is not None
    found = [
        sum(1 for _ in read_file(Path(REAL) / "glue", TASKS[task], file.split))
        for file in TASKS[task].files
    ]
    assert tuple(found) == ROWS[task]


@pytest.mark.parametrize("task", ROWS)
def test_the_made_up_files_have_their_rows(glue: Path, task: str) -> None:
    for file in TASKS[task].files:
        found = read(glue, task, file.split)
        assert len(found) == SIZES[file.name.split("_")[0].split(".")[0]]
        assert all((example.label is None) == file.split.startswith("test") for example in found)
        assert len(found[0].sentences) == (1 if task in ("CoLA", "SST-2") else 2)


def test_quotes_are_letters(glue: Path) -> None:
    assert read(glue, "CoLA", "train")[0].sentences == (f"{QUOTED} is bad",)
    assert read(glue, "SST-2", "train")[0].sentences == (f"{QUOTED} is bad",)


def test_columns_are_the_right_ones(glue: Path) -> None:
    mrpc = read(glue, "MRPC", "train")[0]
    assert (mrpc.id, mrpc.label, mrpc.sentences[0].split()[0]) == ("0", "1", "the")
    stsb = read(glue, "STS-B", "valid")[1]
    assert (stsb.id, stsb.label) == ("1", "0.5")
    matched = read(glue, "MNLI", "valid")
    assert [example.label for example in matched[:3]] == ["contradiction", "neutral", "entailment"]
    assert read(glue, "QQP", "test")[4].id == "4"


def test_gzipped_files_read_the_same(glue: Path, tmp_path: Path) -> None:
    (tmp_path / "RTE").mkdir()
    packed = gzip.compress((glue / "RTE" / "train.tsv").read_bytes())
    (tmp_path / "RTE" / "train.tsv.gz").write_bytes(packed)
    assert read(tmp_path, "RTE", "train") == read(glue, "RTE", "train")


def change(glue: Path, tmp_path: Path, task: str, number: int, old: str, new: str) -> Path:
    """A copy of the train file of a task with another text in one line; the folder of all tasks."""
    lines = (glue / task / "train.tsv").read_text(encoding="utf-8").split("\n")
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    (tmp_path / task).mkdir()
    (tmp_path / task / "train.tsv").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("task", "number", "old", "new", "complaint"),
    [
        ("RTE", 3, "\t", " ", "line 3: too few columns, 3 and not 4"),
        ("CoLA", 4, "\t", "\t\t", "line 4: too many columns, 5 and not 4"),
        ("RTE", 3, "not_entailment", "maybe", "line 3: unknown label 'maybe'"),
        ("MNLI", 2, "contradiction", "-", "line 2: unknown label '-'"),
        ("STS-B", 2, "4.75", "nan", "line 2: score 'nan' is no number from 0 to 5"),
        ("STS-B", 2, "4.75", "5.5", "line 2: score '5.5' is no number from 0 to 5"),
        ("STS-B", 3, "0.5", "-0.5", "line 3: score '-0.5'"),
        ("STS-B", 3, "0.5", "high", "line 3: score 'high'"),
        ("RTE", 1, "sentence2", "sentence 2", "line 1: no column 'sentence2'"),
        ("SST-2", 1, "sentence\tlabel", "it is good\t1", "line 1: no column 'sentence'"),
        ("WNLI", 2, "1", "1\r", "line 2: Windows line end"),
    ],
)
def test_a_bad_row_is_named(
    glue: Path, tmp_path: Path, task: str, number: int, old: str, new: str, complaint: str
) -> None:
    folder = change(glue, tmp_path, task, number, old, new)
    with pytest.raises(UserError) as error:
        read(folder, task, "train")
    assert f"{folder / task / 'train.tsv'}, {complaint}" in str(error.value)


def test_an_empty_sentence_is_refused(glue: Path, tmp_path: Path) -> None:
    lines = (glue / "SST-2" / "train.tsv").read_text(encoding="utf-8").split("\n")
    (tmp_path / "SST-2").mkdir()
    (tmp_path / "SST-2" / "train.tsv").write_text(f"{lines[0]}\n \t1\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 2: nothing in column 'sentence'"):
        read(tmp_path, "SST-2", "train")


def test_broken_characters_are_placed(glue: Path, tmp_path: Path) -> None:
    (tmp_path / "CoLA").mkdir()
    raw = (glue / "CoLA" / "train.tsv").read_bytes() + b"gj04\t1\t\tgr\xfcn\n"
    (tmp_path / "CoLA" / "train.tsv").write_bytes(raw)
    with pytest.raises(UserError, match=r"line 13: not valid UTF-8 \(byte 0xfc at column 11\)"):
        read(tmp_path, "CoLA", "train")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("", "no column 'sentence1'"), ("index\tsentence1\tsentence2\tlabel\n", "no rows")],
)
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "RTE").mkdir()
    (tmp_path / "RTE" / "train.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=complaint):
        read(tmp_path, "RTE", "train")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"RTE: holds neither train\.tsv nor train\.tsv\.gz"):
        read(tmp_path, "RTE", "train")


def test_bad_rows_are_left_out_on_request(
    glue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = change(glue, tmp_path, "RTE", 3, "\t", " ")
    assert len(read(folder, "RTE", "train", bad_rows=SKIP)) == SIZES["train"] - 1
    assert "1 bad rows were skipped; the first: " in capsys.readouterr().err


def test_no_row_of_a_test_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "RTE").mkdir()
    text = "index\tsentence1\tsentence2\n0\ta\tb\n1\ta b\n"
    (tmp_path / "RTE" / "test.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="line 3: too few columns"):
        read(tmp_path, "RTE", "test", bad_rows=SKIP)


def test_a_raw_folder_is_written(glue: Path, tmp_path: Path) -> None:
    write(glue, TASKS["MNLI"], tmp_path / "raw")
    names = {path.name for path in (tmp_path / "raw").iterdir()}
    splits = ("train", "valid", "valid1", "test", "test1")
    parts = {f"{split}.{part}" for split in splits for part in ("id", "input0", "input1")}
    assert names == parts | {f"{split}.label" for split in splits[:3]} | {"labels.txt"}
    order = (tmp_path / "raw" / "labels.txt").read_text(encoding="utf-8")
    assert order == "contradiction 1\nneutral 1\nentailment 1\n"


def test_nothing_half_written_stays(glue: Path, tmp_path: Path) -> None:
    folder = change(glue, tmp_path, "STS-B", 2, "4.75", "nan")
    with pytest.raises(UserError, match="'nan' is no number from 0 to 5"):
        write(folder, TASKS["STS-B"], tmp_path / "raw")
    assert list((tmp_path / "raw").iterdir()) == []
    with pytest.raises(UserError, match="unknown task COLA; did you mean CoLA"):
        task_named("COLA")
