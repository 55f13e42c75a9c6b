"""The commands that prepare questions, and the names of test sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.questions import collections, prepare
from diet_mt.bert.questions.collections import test_sets as sets_of
from diet_mt.bert.questions.features import read_about
from diet_mt.errors import UserError

from .made_up import article, coloured, entry, write_squad, write_vocabulary


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return folder


def test_test_sets_by_their_official_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    xquad = touch(tmp_path / "xquad", "xquad.zh.json.gz", "xquad.de.json", "README.md")
    mlqa = touch(
        tmp_path / "mlqa",
        "test-context-de-question-de.json",
        "test-context-de-question-en.json",
        "dev-context-de-question-de.json",
    )
    tydi = touch(
        tmp_path / "tydi",
        *("swahili.dev.json.gz", "korean.train.json", "tydiqa.fi.dev.json"),
        *("tydiqa-goldp-dev-russian.json", "tydiqa-goldp-train-english.json"),
    )
    given = ["--xquad", str(xquad), "--mlqa", str(mlqa), "--tydiqa", str(tydi)]
    assert collections.main(given) == 0
    assert [line.split("\t") for line in capsys.readouterr().out.split("\n")[:-1]] == [
        ["test_xquad_de", "de", "squad", str(xquad / "xquad.de.json")],
        ["test_xquad_zh", "zh", "squad", str(xquad / "xquad.zh.json.gz")],
        ["test_mlqa_de", "de", "mlqa", str(mlqa / "test-context-de-question-de.json")],
        ["test_tydiqa_fi", "fi", "squad", str(tydi / "tydiqa.fi.dev.json")],
        ["test_tydiqa_ru", "ru", "squad", str(tydi / "tydiqa-goldp-dev-russian.json")],
        ["test_tydiqa_sw", "sw", "squad", str(tydi / "swahili.dev.json.gz")],
    ]
    assert collections.main([]) == 0
    assert capsys.readouterr().out == ""


def test_test_sets_that_are_not_clear(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file is named as mlqa names"):
        sets_of("mlqa", tmp_path)
    with pytest.raises(UserError, match="no file is named"):
        sets_of("xquad", tmp_path / "missing")
    twice = touch(tmp_path / "twice", "finnish.dev.json", "tydiqa.goldp.fi.dev.json")
    with pytest.raises(UserError, match="both are fi"):
        sets_of("tydiqa", twice)
    other = touch(tmp_path / "other", "klingon.dev.json")
    with pytest.raises(UserError, match="'klingon' is no language of TyDi QA"):
        sets_of("tydiqa", other)


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vocabulary(tmp_path_factory.mktemp("prepare") / "vocab")


def test_the_command(vocab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = coloured(tmp_path / "q.json", 4, seed=5)
    out = tmp_path / "made"
    sizes = ["--max-tokens", "40", "--stride", "10", "--max-question", "9"]
    given = ["--vocab", str(vocab), "--out", str(out), "--language", "de", "--scoring", "mlqa"]
    assert prepare.main([*given, *sizes, str(file)]) == 0
    about = read_about(out)
    assert (about.name, about.language, about.scoring) == ("q.json", "de", "mlqa")
    assert (about.sizes.max_tokens, about.sizes.stride, about.sizes.max_question) == (40, 10, 9)
    said = capsys.readouterr().err
    assert f"q.json: 4 questions, {about.windows} windows" in said
    assert about.unknown == 0
    assert "warning" not in said


def test_a_vocabulary_of_another_language_is_noticed(
    vocab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = "中国的首都是北京。"
    file = write_squad(tmp_path / "zh.json", article(context, entry("1", "首都?", context, "北京")))
    given = ["--vocab", str(vocab), "--out", str(tmp_path / "made"), "--max-tokens", "40"]
    assert prepare.main([*given, "--stride", "10", "--max-question", "9", str(file)]) == 0
    assert (
        "of the pieces of zh.json are unknown; is the vocabulary one of" in capsys.readouterr().err
    )
    assert read_about(tmp_path / "made").unknown > 5


def test_what_a_folder_was_made_of(
    vocab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = coloured(tmp_path / "q.json", 2, seed=5), tmp_path / "made"
    given = ["--vocab", str(vocab), "--out", str(out), "--max-tokens", "40", "--stride", "10"]
    assert prepare.main([*given, "--max-question", "9", str(file)]) == 0
    check = ["--vocab", str(vocab), "--out", str(out), "--check", str(file)]
    assert prepare.main(check) == 0
    coloured(file, 2, seed=6)
    capsys.readouterr()
    assert prepare.main(check) == 2
    assert f"error: {out}: was not made of what is in {file}; remove" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--train"], "question x: no answers, so it cannot be trained on"),
        (["--scoring", "mlqa", "--language", "fi"], "language 'fi': MLQA's scores"),
        (["--max-tokens", "50"], "fewer than the stride"),
        (["--vocab", "missing"], "missing"),
    ],
)
def test_what_is_refused(
    vocab: Path,
    tmp_path: Path,
    options: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = write_squad(tmp_path / "q.json", article("one", {"id": "x", "question": "what?"}))
    given = ["--vocab", str(vocab), "--out", str(tmp_path / "out"), *options, str(file)]
    assert prepare.main(given) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert complaint in error
    assert not (tmp_path / "out").exists()
