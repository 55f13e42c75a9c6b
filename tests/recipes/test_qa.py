"""Questions from their official files to windows, on made-up ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.questions.features import read_about, read_features

from ..bert.questions.made_up import article, coloured, entry, write_squad, write_vocabulary
from .conftest import Once
from .runner import only_error, run, stages_of, state

SIZES = {"MAX_TOKENS": 48, "STRIDE": 16, "MAX_QUESTION": 20}


@pytest.fixture(scope="module")
def official(once: Once) -> Path:
    """train.json, valid.json, folders xquad, mlqa and tydi, and, as VOCAB, vocabulary."""

    def fill(folder: Path) -> None:
        write_vocabulary(folder / "vocabulary")
        for name in ("xquad", "mlqa", "tydi"):
            (folder / name).mkdir()
        coloured(folder / "train.json", 20, seed=1)
        coloured(folder / "valid.json", 6, seed=2)
        coloured(folder / "xquad" / "xquad.en.json", 5, seed=3)
        chinese = "中国的首都是北京。"
        asked = entry("zh1", "首都?", chinese, "北京")
        write_squad(folder / "xquad" / "xquad.zh.json", article(chinese, asked))
        coloured(folder / "mlqa" / "test-context-de-question-de.json", 4, seed=4)
        coloured(folder / "tydi" / "finnish.dev.json", 3, seed=5)

    return once("qa", fill)


def settings(official: Path, out: Path) -> dict[str, object]:
    files = {"TRAIN": official / "train.json", "VALID": official / "valid.json"}
    return {**SIZES, **files, "VOCAB": official / "vocabulary", "OUT": out}


def test_the_qa_recipe(official: Path, tmp_path: Path) -> None:
    out = tmp_path / "with a space"
    given = settings(official, out)
    first = run("qa", XQUAD=official / "xquad", **given)
    assert first.returncode == 0, first.stderr
    stages = ["dict.txt", "wordpiece.json", "train", "valid", "test_xquad_en", "test_xquad_zh"]
    assert stages_of(out) == stages
    assert "train.json: 20 questions" in first.stderr
    about = read_about(out / "train")
    assert (about.questions, about.language, about.scoring) == (20, "en", "squad")
    assert (about.max_tokens, about.stride, about.max_question) == (48, 16, 20)
    assert about.windows == len(read_features(out / "train")) > 20
    assert read_about(out / "test_xquad_zh").language == "zh"
    for name in ("dict.txt", "wordpiece.json"):
        assert (out / name).read_bytes() == (official / "vocabulary" / name).read_bytes()
    before = state(out)
    second = run("qa", XQUAD=official / "xquad", **given)
    assert second.stderr.count("done before") == 6
    assert state(out) == before

    # Test sets are added later; other settings are refused.
    more = {"MLQA": official / "mlqa", "TYDIQA": official / "tydi"}
    third = run("qa", **more, **given)
    assert third.returncode == 0, third.stderr
    assert stages_of(out) == [*stages, "test_mlqa_de", "test_tydiqa_fi"]
    assert read_about(out / "test_mlqa_de").scoring == "mlqa"
    assert "was made with" in only_error(run("qa", **{**given, "STRIDE": 10}))

    # Another folder of the same names is not taken for this one.
    (tmp_path / "xquad").mkdir()
    coloured(tmp_path / "xquad" / "xquad.en.json", 5, seed=9)
    said = only_error(run("qa", XQUAD=tmp_path / "xquad", **given))
    assert "test_xquad_en: was not made of what is in" in said


def test_an_interrupted_split_is_made_again(official: Path, tmp_path: Path) -> None:
    given = settings(official, tmp_path / "out")
    (tmp_path / "out" / "train.part").mkdir(parents=True)
    (tmp_path / "out" / "train.part" / "tokens.npy").write_bytes(b"half")
    assert run("qa", **given).returncode == 0
    assert read_about(tmp_path / "out" / "train").questions == 20


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"TRAIN": ""}, "set TRAIN, as in"),
        ({"VOCAB": "gone"}, "gone: no dict.txt; set VOCAB"),
        ({"STRIDE": "x"}, "STRIDE must be a positive number, got 'x'"),
        ({"MAX_QUESTION": 40}, "4 are left for the context, fewer than the stride 16"),
        ({"XQUAD": "gone"}, "gone: no file is named as xquad names its test sets"),
        ({"VALID": "gone.json"}, "gone.json: cannot be read"),
    ],
)
def test_wrong_settings(
    official: Path, tmp_path: Path, changes: dict[str, object], complaint: str
) -> None:
    result = run("qa", **{**settings(official, tmp_path / "out"), **changes})
    assert complaint in only_error(result)


def test_wrong_questions_are_refused_with_file_and_question(official: Path, tmp_path: Path) -> None:
    wrong = article("one two", entry("q7", "what?", "one two", "two"))
    wrong["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = 1
    file = write_squad(tmp_path / "wrong.json", wrong)
    result = run("qa", **{**settings(official, tmp_path / "out"), "TRAIN": file})
    message = only_error(result)
    assert f"{file}, question q7: answer 'two' does not stand at character 1" in message
    assert not (tmp_path / "out" / "train").exists()
