"""XNLI's tables of many languages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diet_mt.bert import xnli
from diet_mt.bert.xnli import files_of, language_of, read_languages
from diet_mt.errors import UserError

from .made_glue import XNLI_HEADER, write_glue, write_table, write_xnli, xnli_rows

REAL = os.environ.get("DIET_MT_DATA")
# Kind of file -> rows of each language, as the README of the real data has them.
ROWS = {
    "dev": dict.fromkeys(("en", "hr", "ko", "sw", "ur", "zh"), 2490),
    "test": dict.fromkeys(("en", "hr", "ko", "sw", "ur"), 5010),
}


@pytest.mark.skipif(REAL is None, reason="DIET_MT_DATA, the folder of the real data, is not set")
@pytest.mark.parametrize("kind", ROWS)
def test_the_real_files_have_their_rows(kind: str) -> None:
    found = read_languages(files_of(Path(str(REAL)) / "xnli", kind))
    assert {language: len(examples) for language, examples in found.items()} == ROWS[kind]
    for examples in found.values():
        labels = [example.label for example in examples]
        assert {labels.count(label) for label in labels} == {len(examples) // 3}


def test_languages_are_told_apart(tmp_path: Path) -> None:
    write_xnli(tmp_path)
    write_table(tmp_path / "more.dev.tsv", [XNLI_HEADER, *xnli_rows("ko", 4)])
    found = read_languages(files_of(tmp_path, "dev"))
    assert {language: len(examples) for language, examples in found.items()} == {
        "en": 6,
        "ko": 4,
        "sw": 6,
    }
    assert found["sw"][2].label == "entailment"
    assert len(found["sw"][2].sentences) == 2


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (xnli_rows("en", 1)[0][:-1], "line 2: too few columns, 18 and not 19"),
        (["en", "maybe", *xnli_rows("en", 1)[0][2:]], "line 2: unknown label 'maybe'"),
        (["English!", *xnli_rows("en", 1)[0][1:]], "line 2: 'English!' is no code"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: list[object], complaint: str) -> None:
    write_table(tmp_path / "a.dev.tsv", [XNLI_HEADER, row])
    with pytest.raises(UserError, match=complaint):
        read_languages(files_of(tmp_path, "dev"))


def test_a_language_is_in_one_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_table(tmp_path / f"{name}.dev.tsv", [XNLI_HEADER, *xnli_rows("en", 2)])
    with pytest.raises(UserError, match=r"b\.dev\.tsv, line 2: language 'en' is in a\.dev\.tsv"):
        read_languages(files_of(tmp_path, "dev"))


def test_train_and_all_languages_are_written(tmp_path: Path) -> None:
    folder, glue = write_xnli(tmp_path / "xnli"), write_glue(tmp_path / "glue")
    xnli.write(folder, glue, tmp_path / "raw")
    splits = {path.stem for path in (tmp_path / "raw").glob("*.label")}
    assert splits == {"train", "valid_en", "valid_sw", "test_en", "test_sw"}
    assert [language_of(split) for split in ("test_sw", "valid")] == ["sw", "en"]


def test_english_is_needed(tmp_path: Path) -> None:
    folder, glue = write_xnli(tmp_path / "xnli", ("sw",)), write_glue(tmp_path / "glue")
    with pytest.raises(UserError, match="no English dev set"):
        xnli.write(folder, glue, tmp_path / "raw")
