"""Files of questions become folders; the names of test sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diet_mt.bert.questions import collections, prepare
from diet_mt.bert.questions.collections import test_sets as sets_of
from diet_mt.bert.questions.features import read_about
from diet_mt.bert.questions.windows import WindowSizes
from diet_mt.errors import UserError

from .made_up import article, coloured, entry, write_squad, write_vocabulary


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return folder


def test_test_sets_by_their_official_names(tmp_path: Path) -> None:
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
    given = {"xquad": xquad, "mlqa": mlqa, "tydiqa": tydi}
    assert [each for name, folder in given.items() for each in sets_of(name, folder)] == [
        collections.QuestionSource("test_xquad_de", "de", "squad", xquad / "xquad.de.json"),
        collections.QuestionSource("test_xquad_zh", "zh", "squad", xquad / "xquad.zh.json.gz"),
        collections.QuestionSource(
            "test_mlqa_de", "de", "mlqa", mlqa / "test-context-de-question-de.json"
        ),
        collections.QuestionSource("test_tydiqa_fi", "fi", "squad", tydi / "tydiqa.fi.dev.json"),
        collections.QuestionSource(
            "test_tydiqa_ru", "ru", "squad", tydi / "tydiqa-goldp-dev-russian.json"
        ),
        collections.QuestionSource("test_tydiqa_sw", "sw", "squad", tydi / "swahili.dev.json.gz"),
    ]


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


SIZES = WindowSizes(40, 10, 9)


def test_what_a_folder_says_of_itself(
    vocab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = coloured(tmp_path / "q.json", 4, seed=5), tmp_path / "made"
    about = prepare.prepare(file, vocab, out, SIZES, language="de", scoring="mlqa")
    assert about == read_about(out)
    assert (about.name, about.language, about.scoring) == ("q.json", "de", "mlqa")
    assert (about.sizes, about.questions, about.unknown) == (SIZES, 4, 0)
    assert "warning" not in capsys.readouterr().err
    prepare.check_source(file, out)
    coloured(file, 2, seed=6)
    with pytest.raises(UserError, match=rf"{out}: was not made of what is in {file}; remove it"):
        prepare.check_source(file, out)


def test_a_vocabulary_of_another_language_is_noticed(
    vocab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = "中国的首都是北京。"
    file = write_squad(tmp_path / "zh.json", article(context, entry("1", "首都?", context, "北京")))
    assert prepare.prepare(file, vocab, tmp_path / "made", SIZES).unknown > 5
    said = capsys.readouterr().err
    assert "of the pieces of zh.json are unknown; is the vocabulary one of" in said


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"need_answers": True}, "question x: no answers, so it cannot be trained on"),
        ({"scoring": "mlqa", "language": "fi"}, "language 'fi': MLQA's scores"),
        ({"vocab": Path("missing")}, "missing"),
    ],
)
def test_what_is_refused(
    vocab: Path, tmp_path: Path, given: dict[str, Any], complaint: str
) -> None:
    file = write_squad(tmp_path / "q.json", article("one", {"id": "x", "question": "what?"}))
    with pytest.raises(UserError, match=complaint):
        prepare.prepare(file, **{"vocab": vocab, "out": tmp_path / "out", "sizes": SIZES, **given})
    assert not (tmp_path / "out").exists()
