"""Questions from their official files to windows, on made-up ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.questions.features import read_about, read_features

from ..bert.questions.made_up import article, coloured, entry, write_squad
from .conftest import Once
from .running import killed, only_error, prepare, stages_of, state


@pytest.fixture(scope="module")
def official(once: Once) -> Path:
    """train.json, valid.json, folders xquad, mlqa and tydi."""

    def fill(folder: Path) -> None:
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


def test_questions(official: Path, vocabulary: Path, tmp_path: Path) -> None:
    out = tmp_path / "with a space"
    files = ("--train", official / "train.json", "--valid", official / "valid.json")
    sizes = ("--max-tokens", 48, "--stride", 16, "--max-question", 20)
    words = ("qa", *files, "--vocab", vocabulary, "--out", out, *sizes)
    for end in ("dict.txt.part.part", "train.part/windows.npy.part", "valid.part/about.json.part"):
        killed("os.rename", end, *words)
    assert (out / "valid.part" / "squad.json").exists()
    said = prepare(*words, "--xquad", official / "xquad").ok()
    stages = ["dict.txt", "wordpiece.json", "train", "valid", "test_xquad_en", "test_xquad_zh"]
    assert stages_of(out) == stages
    assert not list(out.rglob("*.part"))
    assert "== train: done before" in said
    assert "valid.json: 6 questions" in said
    about = read_about(out / "train")
    assert (about.questions, about.language, about.scoring) == (20, "en", "squad")
    assert (about.max_tokens, about.stride, about.max_question) == (48, 16, 20)
    assert about.windows == len(read_features(out / "train")) > 20
    assert read_about(out / "test_xquad_zh").language == "zh"
    for name in ("dict.txt", "wordpiece.json"):
        assert (out / name).read_bytes() == (vocabulary / name).read_bytes()
    before = state(out)
    assert prepare(*words, "--xquad", official / "xquad").ok().count("done before") == 6
    assert state(out) == before

    # Test sets are added later; other settings are refused.
    prepare(*words, "--mlqa", official / "mlqa", "--tydiqa", official / "tydi").ok()
    assert stages_of(out) == [*stages, "test_mlqa_de", "test_tydiqa_fi"]
    assert read_about(out / "test_mlqa_de").scoring == "mlqa"
    assert "with --stride 16, not --stride 10" in only_error(prepare(*words, "--stride", 10))

    # Another folder of the same names is not taken for this one.
    (tmp_path / "xquad").mkdir()
    coloured(tmp_path / "xquad" / "xquad.en.json", 5, seed=9)
    message = only_error(prepare(*words, "--xquad", tmp_path / "xquad"))
    assert "test_xquad_en: was not made of what is in" in message


@pytest.mark.parametrize("part", ["train", "valid"])
def test_wrong_questions_are_refused_before_any_work_with_file_and_question(
    official: Path, vocabulary: Path, tmp_path: Path, part: str
) -> None:
    wrong = article("one two", entry("q7", "what?", "one two", "two"))
    wrong["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = 1
    file = write_squad(tmp_path / "wrong.json", wrong)
    files = {"train": official / "train.json", "valid": official / "valid.json", part: file}
    given = ("--train", files["train"], "--valid", files["valid"], "--vocab", vocabulary)
    message = only_error(prepare("qa", *given, "--out", tmp_path / "out"))
    assert f"{file}, question q7: answer 'two' does not stand at character 1" in message
    assert not (tmp_path / "out").exists()
