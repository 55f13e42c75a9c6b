"""Labelled tables: GLUE's and XNLI's files of the official layout, bad rows, and cut examples."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from diet_mt.bert import glue as tasks
from diet_mt.bert.glue import (
    TASKS,
    Example,
    language_of,
    read_languages,
    write_split,
    xnli_files,
)
from diet_mt.bert.labelled_stages import shortened, split_folder
from diet_mt.bert.settings import SKIP
from diet_mt.bert.tokenizer import WORDPIECE
from diet_mt.system.errors import UserError

from .made import (
    QUOTED,
    SIZES,
    XNLI_HEADER,
    write_glue,
    write_table,
    write_tokenizer,
    write_xnli,
    xnli_rows,
)


@pytest.fixture(scope="module")
def glue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_glue(tmp_path_factory.mktemp("glue"))


def read(folder: Path, task: str, split: str, **how: str) -> list[Example]:
    (file,) = (file for file in TASKS[task].files if file.split == split)
    return list(tasks.read_file(folder, TASKS[task], file, **how))


@pytest.mark.parametrize("task", TASKS)
def test_every_file_of_a_task(glue: Path, task: str) -> None:
    for file in TASKS[task].files:
        examples = read(glue, task, file.split)
        assert len(examples) == SIZES[file.name.split("_")[0].split(".")[0]]
        assert all((each.label is None) == file.split.startswith("test") for each in examples)
        assert len(examples[0].sentences) == (1 if task in ("CoLA", "SST-2") else 2)


def test_columns_and_quotes(glue: Path, tmp_path: Path) -> None:
    for task in ("CoLA", "SST-2"):
        assert read(glue, task, "train")[0].sentences == (f"{QUOTED} is bad",)
    mrpc = read(glue, "MRPC", "train")[0]
    assert (mrpc.id, mrpc.label, mrpc.sentences[0].split()[0]) == ("0", "1", "the")
    stsb = read(glue, "STS-B", "valid")[1]
    assert (stsb.id, stsb.label) == ("1", "0.5")
    matched = read(glue, "MNLI", "valid")
    assert [example.label for example in matched[:3]] == ["contradiction", "neutral", "entailment"]
    assert read(glue, "QQP", "test")[4].id == "4"
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
    content = "\n".join(lines).encode("utf-8", "surrogateescape")
    (tmp_path / task / "train.tsv").write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("task", "number", "old", "new", "complaint"),
    [
        ("RTE", 3, "\t", " ", "3 columns, expected 4"),
        ("CoLA", 4, "the", "gr\udcfcn", "byte 0xfc"),
        ("RTE", 3, "not_entailment", "maybe", "'maybe'"),
        ("MNLI", 2, "contradiction", "-", "'-'"),
        ("STS-B", 2, "4.75", "nan", "'nan'"),
        ("STS-B", 3, "0.5", "-0.5", "'-0.5'"),
        ("RTE", 1, "sentence2", "sentence 2", "'sentence2'"),
        ("SST-2", 2, f"{QUOTED} is bad", " ", "empty"),
        ("WNLI", 2, "1", "1\r", "CR LF"),
    ],
)
def test_a_bad_row_is_named_and_leaves_nothing(
    glue: Path, tmp_path: Path, task: str, number: int, old: str, new: str, complaint: str
) -> None:
    folder = change(glue, tmp_path, task, number, old, new)
    with pytest.raises(UserError) as error:
        tasks.write_glue(folder, TASKS[task], tmp_path / "raw")
    assert f"{folder / task / 'train.tsv'}, line {number}: " in str(error.value)
    assert complaint in str(error.value)
    assert list((tmp_path / "raw").iterdir()) == []


def test_a_file_without_rows_is_named(tmp_path: Path) -> None:
    (tmp_path / "RTE").mkdir()
    for text in (None, "", "index\tsentence1\tsentence2\tlabel\n"):
        if text is not None:
            (tmp_path / "RTE" / "train.tsv").write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=r"RTE.*train\.tsv"):
            read(tmp_path, "RTE", "train")
    with pytest.raises(UserError, match="COLA"):
        tasks.task_named("COLA")


def test_bad_rows_are_skipped_on_request(
    glue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But no row of a test file."""
    folder = change(glue, tmp_path, "RTE", 3, "\t", " ")
    assert len(read(folder, "RTE", "train", bad_rows=SKIP)) == SIZES["train"] - 1
    assert "1 bad rows were skipped" in capsys.readouterr().err
    text = "index\tsentence1\tsentence2\n0\ta\tb\n1\ta b\n"
    (tmp_path / "RTE" / "test.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="line 3"):
        read(tmp_path, "RTE", "test", bad_rows=SKIP)


def test_raw_folders(glue: Path, tmp_path: Path) -> None:
    tasks.write_glue(glue, TASKS["MNLI"], tmp_path / "raw")
    names = {path.name for path in (tmp_path / "raw").iterdir()}
    splits = ("train", "valid", "valid1", "test", "test1")
    parts = {f"{split}.{part}" for split in splits for part in ("id", "input0", "input1")}
    assert names == parts | {f"{split}.label" for split in splits[:3]} | {"labels.txt"}
    order = (tmp_path / "raw" / "labels.txt").read_text(encoding="utf-8")
    assert order == "contradiction 1\nneutral 1\nentailment 1\n"
    xnli = write_xnli(tmp_path / "xnli")
    tasks.write_xnli(xnli, glue, tmp_path / "raw xnli")
    splits = {path.stem for path in (tmp_path / "raw xnli").glob("*.label")}
    assert splits == {"train", "valid_en", "valid_sw", "test_en", "test_sw"}
    assert [language_of(split) for split in ("test_sw", "valid")] == ["sw", "en"]
    write_xnli(xnli, ("sw",))
    with pytest.raises(UserError, match="xnli: no English"):
        tasks.write_xnli(xnli, glue, tmp_path / "none")


def test_languages_of_xnli(tmp_path: Path) -> None:
    write_xnli(tmp_path)
    write_table(tmp_path / "more.dev.tsv", [XNLI_HEADER, *xnli_rows("ko", 4)])
    languages = read_languages(xnli_files(tmp_path, "dev"))
    sizes = {language: len(examples) for language, examples in languages.items()}
    assert sizes == {"en": 6, "ko": 4, "sw": 6}
    assert languages["sw"][2].label == "entailment"
    assert len(languages["sw"][2].sentences) == 2
    write_table(tmp_path / "zz.dev.tsv", [XNLI_HEADER, *xnli_rows("ko", 2), *xnli_rows("fr", 2)])
    with pytest.raises(UserError, match=r"zz\.dev\.tsv: .*'ko'"):
        read_languages(xnli_files(tmp_path, "dev"), SKIP)
    good = xnli_rows("en", 1)[0]
    for row, named in (
        (good[:-1], "18 columns, expected 19"),
        (["en", "maybe", *good[2:]], "'maybe'"),
        (["English!", *good[1:]], "'English!'"),
    ):
        write_table(tmp_path / "bad.tsv", [XNLI_HEADER, row])
        with pytest.raises(UserError, match=f"bad.tsv, line 2: .*{named}"):
            read_languages([tmp_path / "bad.tsv"])


def popped(first: list[str], second: list[str], room: int) -> list[list[str]]:
    """BERT's way, word by word: the longer one loses its last; of equal ones the second."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return [first, second]


@pytest.mark.parametrize("max_length", [6, 7, 10, 11, 20, 40])
def test_pairs_are_cut_as_bert_cuts_them(max_length: int) -> None:
    for one in range(1, 14):
        for two in range(1, 14):
            first, second = [f"a{n}" for n in range(one)], [f"b{n}" for n in range(two)]
            expected = popped(first, second, max_length - 4)
            assert shortened([first, second], max_length) == expected
    assert shortened([["a", "b", "c", "d"]], 5) == [["a", "b", "c"]]
    assert shortened([["a", "b", "c"]], 5) == [["a", "b", "c"]]


def test_every_split_is_split_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = write_tokenizer(tmp_path / "vocabulary", WORDPIECE)
    # U+2028 and U+0085 end a line for str.splitlines, not here.
    examples = [Example("0", ("one\u2028two", "three"), "1"), Example("1", ("", "e " * 40), "0")]
    for split in ("train", "test"):
        write_split(tmp_path / "raw", split, examples)
    given = (tmp_path / "raw", tmp_path / "out", vocabulary, 20, 1)
    split_folder(*given)
    assert "train: 1 examples of more than 20 " in capsys.readouterr().err
    for split in ("train", "test"):
        first, second = (
            (tmp_path / "out" / f"{split}.input{n}").read_text(encoding="utf-8").split("\n")
            for n in (0, 1)
        )
        assert len(first) == len(second) == 3
        assert "".join(first[0].split()).replace("##", "") == "onetwo"
        assert (first[1], len(second[1].split())) == ("", 16)
    split_folder(*given)
    assert "train: done before" in capsys.readouterr().err
