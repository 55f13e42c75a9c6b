"""GLUE and XNLI from their official files to fairseq's form, on made-up rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from diet_mt.bert.tokenizer import WORDPIECE, load, write_dictionary_of

from ..bert.made_glue import SIZES, write_glue, write_xnli
from ..bert.tokenizers_made import write_tokenizer
from .conftest import Once
from .runner import only_error, run, stages_of, state


@pytest.fixture(scope="module")
def official(once: Once) -> Path:
    """The folders glue, xnli and, as VOCAB, vocabulary."""

    def fill(folder: Path) -> None:
        write_glue(folder / "glue")
        write_xnli(folder / "xnli")
        vocabulary = write_tokenizer(folder / "vocabulary", WORDPIECE)
        write_dictionary_of(load(vocabulary), vocabulary / "dict.txt")

    return once("glue", fill)


def sentences(folder: Path, part: str, split: str) -> list[str]:
    dictionary = Dictionary.load(str(folder / part / "dict.txt"))
    found = data_utils.load_indexed_dataset(str(folder / part / split), dictionary)
    return [dictionary.string(sentence) for sentence in found]


def test_the_glue_recipe(official: Path, tmp_path: Path) -> None:
    out = tmp_path / "with a space"
    given = {"GLUE_DIR": official / "glue", "VOCAB": official / "vocabulary", "OUT": out}
    first = run("glue", "MNLI", MAX_LENGTH=30, **given)
    assert first.returncode == 0, first.stderr
    made = out / "MNLI"
    assert stages_of(made) == ["raw", "pieces", "input0", "input1", "label"]
    for split, rows in (("train", "train"), ("valid1", "dev"), ("test1", "test")):
        assert f"{split}, input1: {SIZES[rows]}, expected {SIZES[rows]}" in first.stderr
    raw = (made / "raw" / "valid1.label").read_text(encoding="utf-8").split("\n")[:-1]
    assert sentences(made, "label", "valid1") == raw
    assert (made / "label" / "dict.txt").read_text() == (made / "raw" / "labels.txt").read_text()
    pieces = (made / "pieces" / "test.input0").read_text(encoding="utf-8").split("\n")[:-1]
    assert sentences(made, "input0", "test") == pieces
    assert (made / WORDPIECE).read_bytes() == (official / "vocabulary" / WORDPIECE).read_bytes()
    assert not (made / "label" / "test.idx").exists()
    before = state(out)
    second = run("glue", "MNLI", MAX_LENGTH=30, **given)
    assert second.stderr.count("done before") == 5
    assert state(out) == before
    assert "was made with" in only_error(run("glue", "MNLI", MAX_LENGTH=20, **given))


def test_scores_stay_text(official: Path, tmp_path: Path) -> None:
    given = {"GLUE_DIR": official / "glue", "VOCAB": official / "vocabulary", "OUT": tmp_path}
    # What takes long passes for done, and is missed in the end: the labels are of interest here.
    for part in ("input0", "input1"):
        (tmp_path / "STS-B" / part).mkdir(parents=True)
    assert run("glue", "STS-B", **given).returncode == 2
    scores = (tmp_path / "STS-B" / "label" / "valid.label").read_text(encoding="utf-8")
    assert scores.split("\n")[:2] == ["4.75", "0.5"]


def test_the_xnli_recipe(official: Path, tmp_path: Path) -> None:
    given = {"GLUE_DIR": official / "glue", "XNLI_DIR": official / "xnli"}
    said = run("xnli", VOCAB=official / "vocabulary", OUT=tmp_path / "XNLI", **given)
    assert said.returncode == 0, said.stderr
    names = {path.stem for path in (tmp_path / "XNLI" / "label").glob("*.idx")}
    assert names == {"train", "valid_en", "valid_sw", "test_en", "test_sw"}
    assert sentences(tmp_path / "XNLI", "label", "test_sw")[:2] == ["contradiction", "neutral"]


@pytest.mark.parametrize(
    ("arguments", "settings", "complaint"),
    [
        ([], {}, "usage: "),
        (["CoLA"], {}, "set GLUE_DIR to the folder"),
        (["CoLA"], {"GLUE_DIR": "."}, "set VOCAB to the bin folder"),
        (["Cola"], {"GLUE_DIR": ".", "VOCAB": "."}, "task 'Cola': choose from CoLA SST-2"),
        (["CoLA"], {"GLUE_DIR": ".", "VOCAB": "gone"}, "gone: no dict.txt"),
        (["CoLA"], {"GLUE_DIR": ".", "VOCAB": ".", "BAD_ROWS": "mend"}, "choose refuse or skip"),
    ],
)
def test_bad_settings(
    tmp_path: Path, arguments: list[str], settings: dict[str, str], complaint: str
) -> None:
    assert complaint in only_error(run("glue", *arguments, OUT=tmp_path / "out", **settings))
    assert not (tmp_path / "out").exists()


def test_a_bad_row_stops_the_recipe(official: Path, tmp_path: Path) -> None:
    (tmp_path / "glue" / "WNLI").mkdir(parents=True)
    text = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t7\n"
    (tmp_path / "glue" / "WNLI" / "train.tsv").write_text(text, encoding="utf-8")
    given = {"GLUE_DIR": tmp_path / "glue", "VOCAB": official / "vocabulary", "OUT": tmp_path}
    message = only_error(run("glue", "WNLI", **given))
    assert "train.tsv, line 2: unknown label '7'; it must be one of 0, 1" in message
    assert not (tmp_path / "WNLI" / "raw").exists()
