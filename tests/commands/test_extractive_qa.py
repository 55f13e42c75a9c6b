"""Fine-tuning on questions and answering them, by the real commands, from a toy of a pretrained
encoder.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from diet_mt.bert.qa import prepare
from diet_mt.bert.squad import read_squad
from diet_mt.bert.windows import WindowSizes
from diet_mt.evaluation.records import read_task_results
from diet_mt.files import sha256

from ..bert.made import coloured
from ..calling import called
from .encoders import ENCODER, LONGEST, Encoders
from .runner import Done
from .workshop import BATCHES, IN_ONE, USER_DIR

SIZES = WindowSizes(max_tokens=48, stride=16, max_question=20)
COUNTS = {"train": 160, "valid": 30, "test_xquad_en": 9, "test_mlqa_de": 7, "test_tydiqa_fi": 5}
RECIPE = (
    "--task", "extractive_qa", "--criterion", "extractive_qa", "--arch", "roberta_diet_rel_tiny",
    "--segment-encoding", "per-head", "--max-positions", LONGEST, "--optimizer", "adam",
    "--lr", 0.01, "--batch-size", 32, "--seed", 1, "--dropout", 0, "--attention-dropout", 0,
    "--best-checkpoint-metric", "f1", "--maximize-best-checkpoint-metric", *BATCHES, *IN_ONE,
    "--log-format", "json", "--no-epoch-checkpoints",
)  # fmt: skip


@pytest.fixture(scope="module")
def pretrained(encoders: Encoders) -> Path:
    return encoders.pretrained("diet-rel") / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def questions(encoders: Encoders, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as data-prep/prepare-qa.sh makes it."""
    folder = tmp_path_factory.mktemp("questions")
    for name in ("dict.txt", "wordpiece.json"):
        shutil.copy(encoders.vocabulary / name, folder / name)
    for seed, (split, count) in enumerate(COUNTS.items(), start=1):
        file = coloured(folder / f"{split}.json", count, seed)
        scoring = "mlqa" if "mlqa" in split else "squad"
        language = split.rpartition("_")[2] if "_" in split else "en"
        prepare(file, folder, folder / split, SIZES, language=language, scoring=scoring)
    return folder


def training(questions: Path, pretrained: Path, save_dir: Path, *more: Any) -> tuple[Any, ...]:
    start = ("--finetune-from-model", pretrained, "--save-dir", save_dir)
    return (questions, *USER_DIR, *ENCODER, *RECIPE, *start, *more)


def validations(done: Done) -> list[dict[str, Any]]:
    lines = (done.stdout + done.stderr).split("\n")
    return [json.loads(line[line.index("{") :]) for line in lines if '"valid_f1"' in line]


@pytest.fixture(scope="module")
def trained(
    encoders: Encoders, questions: Path, pretrained: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Done]:
    """The best checkpoint of a fine-tuning, and what it said."""
    folder = tmp_path_factory.mktemp("trained")
    words = training(questions, pretrained, folder, "--max-epoch", 8)
    return folder / "checkpoint_best.pt", encoders.run("train", *words).ok()


def test_it_learns_and_its_answers_are_those_of_the_validation(
    trained: tuple[Path, Done],
    questions: Path,
    pretrained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint, done = trained
    assert "the checkpoint has no span head: it starts fresh" in done.stdout + done.stderr
    best = max(validations(done), key=lambda each: float(each["valid_f1"]))
    assert float(best["valid_f1"]) > 60
    results = tmp_path / "results" / "tasks"
    splits = ["valid", "test_xquad_en", "test_mlqa_de"]
    given = [str(questions), str(checkpoint), "--out", str(tmp_path / "results" / "answers")]
    kept = ["--results", str(results), "--pretrained", str(pretrained)]
    assert called("answer", *given, "--split", *splits, *kept, "--batch-size", "7") == 0
    said = capsys.readouterr().out.split("\n")[:-1]
    scores = f"f1 {float(best['valid_f1']):.4f} exact_match {float(best['valid_exact_match']):.4f}"
    assert said[0].split("\t")[:4] == ["SQuAD", "valid", "30 questions", scores]
    (result,) = read_task_results(results / "SQuAD.jsonl")
    assert f"{result.score:.4f}" == f"{float(best['valid_f1']):.4f}"
    assert (result.split, result.language, result.main_metric) == ("valid", "en", "f1")
    assert (result.system, result.segments, result.batch) == ("diet-rel", "per-head", 32)
    assert result.checkpoint_sha256 == sha256(checkpoint)
    assert result.pretrained_sha256 == sha256(pretrained)
    assert (result.pretrain_updates, result.chosen_by) == (30, "valid f1")
    assert (result.examples, result.train_examples) == (30, 160)
    (foreign,) = read_task_results(results / "MLQA.jsonl")
    assert (foreign.language, foreign.split) == ("de", "test_mlqa_de")
    assert "scored as mlqa" in foreign.notes
    assert (results / "XQuAD.jsonl").exists()

    assert result.predictions == "results/answers/valid/predictions.json"
    assert Path(result.predictions).exists()


def test_the_files_are_those_of_squad(
    trained: tuple[Path, Done], questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(questions), str(trained[0])]
    assert called("answer", *given, "--split", "valid", "--out", str(tmp_path)) == 0
    printed = capsys.readouterr().out.strip().split("\t")[-1]
    predictions = tmp_path / "valid" / "predictions.json"
    texts = json.loads(predictions.read_text(encoding="utf-8"))
    asked = read_squad(questions / "valid.json")
    assert texts.keys() == {each.id for each in asked}
    listed = json.loads((predictions.parent / "nbest.json").read_text(encoding="utf-8"))
    for each in asked:
        best_text = listed[each.id][0]
        assert texts[each.id] == best_text["text"]
        start = best_text["answer_start"]
        assert each.context[start : start + len(texts[each.id])] == texts[each.id]
        odds = [other["probability"] for other in listed[each.id]]
        assert odds == sorted(odds, reverse=True)
        assert sum(odds) == pytest.approx(1)
    assert called("verify", predictions, "--references", questions / "valid.json") == 0
    found = json.loads(capsys.readouterr().out)
    assert printed == f"f1 {found['f1']:.4f} exact_match {found['exact_match']:.4f}"
    assert found["total"] == 30

    # A file is cut as the questions for training were, so it gets the same answers.
    file = ["--file", str(questions / "valid.json"), "--n-best", "3"]
    assert called("answer", *given, *file, "--out", str(tmp_path / "again")) == 0
    again = json.loads((tmp_path / "again" / "predictions.json").read_text(encoding="utf-8"))
    assert again == texts
    few = json.loads((tmp_path / "again" / "nbest.json").read_text(encoding="utf-8"))
    assert {len(each) for each in few.values()} == {3}


def test_questions_that_cannot_be_answered(
    trained: tuple[Path, Done], questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads((questions / "valid.json").read_text(encoding="utf-8"))
    for article in content["data"][:10]:
        article["paragraphs"][0]["qas"][0].update(answers=[], is_impossible=True)
    file = tmp_path / "v2.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    given = [str(questions), str(trained[0]), "--file", str(file), "--out"]
    for name, threshold in (("never", "1e9"), ("always", "-1e9")):
        assert called("answer", *given, str(tmp_path / name), f"--threshold={threshold}") == 0
        texts = json.loads((tmp_path / name / "predictions.json").read_text(encoding="utf-8"))
        assert all(bool(text) == (name == "never") for text in texts.values())
    assert "NoAns_exact_match 100.0000" in capsys.readouterr().out
    odds = tmp_path / "never" / "null_odds.json"
    predictions = tmp_path / "never" / "predictions.json"
    assert called("verify", predictions, "--references", file, "--null-odds", odds) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["best_f1"] >= max(found["f1"], 100 / 3)
    assert found["NoAns_f1"] == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["{data}", "{pretrained}", "--split", "valid"], "a model of the task masked_lm; fine"),
        (["{data}", "{best}", "--split", "test"], "about.json: cannot be read"),
        (["gone", "{best}", "--split", "valid"], "dict.txt: no such file"),
        (["{data}", "{best}", "--file", "gone.json"], "gone.json: no such file"),
        (
            ["{data}", "{best}", "--file", "{data}/train.json", "--scoring", "mlqa"],
            "language '': MLQA's scores are defined for",
        ),
    ],
)
def test_bad_input_is_one_line(
    trained: tuple[Path, Done],
    questions: Path,
    pretrained: Path,
    tmp_path: Path,
    words: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = {"data": questions, "pretrained": pretrained, "best": trained[0]}
    out = tmp_path / "out"
    assert called("answer", *(word.format(**known) for word in words), "--out", str(out)) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not out.exists()


def test_scores_of_other_questions_are_refused(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predictions = tmp_path / "predictions.json"
    predictions.write_text('{"1.0": "red"}')
    assert called("verify", predictions, "--references", questions / "valid.json") == 2
    assert "1 predictions are of other questions (1.0, for example)" in capsys.readouterr().err
    predictions.write_text("{}")
    assert called("verify", predictions, "--references", questions / "valid.json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"total": 30, "f1": 0, "exact_match": 0}
    assert "30 of 30 questions have no prediction" in captured.err
