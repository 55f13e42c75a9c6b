"""Encoders from pretraining to the rows of tasks: pretrain, finetune, predict, answer, verify."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diet_mt.bert.glue import task_named
from diet_mt.bert.squad import read_squad
from diet_mt.evaluation.checkpoint import read_pretrained
from diet_mt.evaluation.predict import for_server
from diet_mt.evaluation.records import TaskResult, read_task_results
from diet_mt.report.curves import read_training
from diet_mt.system.files import sha256

from ..processes import called, changed
from .encoders import GLUE, PAIRS, Encoders
from .workshop import IN_ONE, USER_DIR, json_lines, measured_loss, state, valid_losses

Captured = pytest.CaptureFixture[str]
SEGMENTS = "encoder.sentence_encoder.segment_positions."
# 300 sentences, packed: a few updates make an epoch.
TINY = """
    --recipe mlm --size tiny --gpus 0 --save-dir saved --tokens-per-sample 48 --max-update 24
    --max-source-positions 64 --sequences-per-update 32 --max-tokens-per-device 768 --lr 0.003
    --save-interval-updates 8 --validate-interval-updates 8 --log-interval 8 --num-workers 0
""".split()  # noqa: SIM905


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def link_data(encoders: Encoders, folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "bin").symlink_to(encoders.vocabulary)


def test_pretraining_learns_and_is_then_left_alone(
    encoders: Encoders, forked: None, here: Path, capsys: Captured
) -> None:
    link_data(encoders, here)
    words = ("pretrain", "data", "diet-abs-lin", *TINY)
    assert called(*words) == 0
    assert "2 x 16 sequences on each: 32 sequences for an update" in capsys.readouterr().err
    curve = read_training(here / "saved")
    assert [point[0] for point in curve.points] == [8, 16, 24]
    bits = [point[1] for point in curve.points]
    assert bits[0] > bits[1] > bits[2]
    assert (curve.system, curve.seed, curve.segments) == ("diet_abs_lin", 1, "none")
    assert curve.settings["tokens-per-sample"] == "48"
    before = changed(here / "saved")
    assert called(*words) == 0
    assert changed(here / "saved") == before


def test_validation_is_masked_alike_throughout_a_training(
    encoders: Encoders, forked: None, here: Path
) -> None:
    """With a rate of 0 nothing but the masks could change the loss, epoch after epoch."""
    link_data(encoders, here)
    assert called("pretrain", "data", "none", *TINY, "--lr", "0") == 0
    assert '"epoch": 3' in (here / "saved" / "train.log").read_text(encoding="utf-8")
    assert len({point[1] for point in read_training(here / "saved").points}) == 1


def test_fine_tuning_adds_segments_to_a_pretrained_checkpoint(encoders: Encoders) -> None:
    """``--restore-file`` with ``--segment-encoding per-head``: from zero. In a new process, the
    options of the model are those of its checkpoint.
    """
    folder = encoders.finetuned("diet-rel")
    before, after = state(encoders.pretrained("diet-rel"))["model"], state(folder)["model"]
    assert not [name for name in before if name.startswith(SEGMENTS)]
    tables = {name: x for name, x in after.items() if name.startswith(SEGMENTS)}
    assert [tuple(table.shape) for table in tables.values()] == [(2, 2, 2)] * 2
    for table in tables.values():
        assert table.any()
        assert table.abs().max() < 0.2, "30 updates from zero"
    log = (folder / "log").read_text(encoding="utf-8")
    assert "--segment-encoding per-head starts at zero" in log
    options = ("--log-format", "json", "--path", folder / "checkpoint_last.pt")
    done = encoders.run("validate", encoders.task("RTE"), *USER_DIR, *PAIRS, *options).ok()
    assert measured_loss(done.stdout, "valid") == valid_losses(log)[30]


def assert_facts(result: TaskResult, encoders: Encoders, checkpoint: Path) -> None:
    """A row's facts about the model, its pretraining and its fine-tuning."""
    pretrained = encoders.checkpoint("diet-rel")
    assert (result.system, result.segments, result.seed) == ("diet-rel", "per-head", 1)
    assert result.checkpoint_sha256 == sha256(checkpoint)
    assert (result.pretrained_sha256, result.pretrain_updates) == (sha256(pretrained), 30)
    perplexity = read_pretrained(pretrained)["pretrain_perplexity"]
    assert result.pretrain_perplexity == perplexity > 1
    assert (result.model["encoder-layers"], result.model["max-source-positions"]) == (2, 64)


def finetuning(encoders: Encoders, task: str, epochs: int) -> tuple[Any, ...]:
    """The command finetune of diet-rel, into the folder run."""
    given = ("--recipe", "glue", "--lr", 0.003, "--max-epoch", epochs, "--batch-size", 16)
    data, pretrained = encoders.task(task), encoders.checkpoint("diet-rel")
    return ("finetune", data, pretrained, *given, *IN_ONE, "--save-dir", "run")


def test_the_command_finetune_trains_once(
    encoders: Encoders, forked: None, here: Path, capsys: Captured
) -> None:
    """And the command predict makes its row."""
    words, data = finetuning(encoders, "CoLA", 6), encoders.task("CoLA")
    assert called(*words) == 0
    log = Path("run", "train.log").read_text(encoding="utf-8")
    assert f"num_updates {6 * GLUE['train'] // 16} " in log
    before = changed(Path("run"))
    assert called(*words) == 0
    assert changed(Path("run")) == before
    assert called(*words, "--segments", "none") == 2
    assert "--segment-encoding: " in capsys.readouterr().err

    best = state(Path("run"), "checkpoint_best.pt")["extra_state"]["best"]
    assert best > 60  # one word decides; nothing is learnt: 0
    checkpoint, results = Path("run", "checkpoint_best.pt"), here / "results" / "tasks"
    outputs = ("--results", results, "--predictions", here / "results" / "predictions")
    for _ in range(2):  # another evaluation of the same run replaces its row
        assert called("predict", data, checkpoint, *outputs) == 0
    assert f"CoLA\tvalid\t{GLUE['dev']} examples\tmatthews {best:.4f}\t" in capsys.readouterr().out
    (result,) = read_task_results(results / "CoLA.jsonl")
    assert result.score == pytest.approx(best, abs=1e-4)
    assert_facts(result, encoders, checkpoint)
    assert (result.lr, result.epochs, result.batch) == (0.003, 6, 16)
    assert result.chosen_by == "valid matthews"
    assert (result.examples, result.train_examples) == (GLUE["dev"], GLUE["train"])
    assert result.notes == ["train: 160 of 8,551 official rows", "valid: 37 of 1,043 official rows"]
    assert not Path(result.predictions).is_absolute()
    table = Path(result.predictions).read_text(encoding="utf-8").split("\n")
    assert table[0] == "index\tprediction\tlabel"
    rows = [line.split("\t") for line in table[1:-1]]
    assert [row[::2] for row in rows] == [[str(n), str(n % 2)] for n in range(GLUE["dev"])]
    right = sum(row[1] == row[2] for row in rows) / len(rows)
    assert result.metrics["accuracy"] == pytest.approx(100 * right, abs=1e-4)

    # A set without labels is only predicted.
    submitted = ("--split", "test", "--predictions", here / "submission")
    assert called("predict", data, checkpoint, *submitted) == 0
    submission = (here / "submission" / "CoLA.tsv").read_text(encoding="utf-8").split("\n")
    assert submission[0] == "index\tprediction"
    assert [line.split("\t")[0] for line in submission[1:-1]] == [str(n) for n in range(11)]
    assert called("predict", data, checkpoint, *outputs, "--split", "test") == 2
    assert "test of CoLA has no labels" in capsys.readouterr().err


def test_regression(encoders: Encoders, forked: None, here: Path, capsys: Captured) -> None:
    assert called(*finetuning(encoders, "STS-B", 2)) == 0
    log = Path("run", "train.log").read_text(encoding="utf-8")
    validations = re.findall("'valid' subset.*", log)
    last = dict(re.findall(r"\| (spearman|pearson) (\S+)", validations[-1]))
    given = (encoders.task("STS-B"), Path("run", "checkpoint_last.pt"))
    assert called("predict", *given, "--split", "test", "--predictions", here) == 0
    capsys.readouterr()
    rows = (here / "STS-B.tsv").read_text(encoding="utf-8").split("\n")[1:-1]
    scores = np.array([float(row.split("\t")[1]) for row in rows])
    assert ((scores >= 0) & (scores <= 5)).all()
    assert called("predict", *given, "--batch-size", "3") == 0
    printed = dict(cell.split(" ") for cell in capsys.readouterr().out.strip().split("\t")[3:])
    # Of -100 to 100. Batches of another size add the same numbers in another order, and scores that
    # are almost equal then change their ranks.
    for name in ("spearman", "pearson"):
        assert float(printed[name]) == pytest.approx(float(last[name]), abs=0.5)


def test_scores_for_the_server_are_within_the_bounds_of_the_labels() -> None:
    drawn = np.array([-0.5, 2.5, 5.5])
    assert for_server(task_named("STS-B"), drawn).tolist() == [0.0, 2.5, 5.0]
    assert for_server(task_named("RTE"), drawn) is drawn


def test_answers_and_their_rows(encoders: Encoders, here: Path, capsys: Captured) -> None:
    """The answers have the scores of the validation in training, and of SQuAD's own scoring."""
    folder, questions = encoders.answering, encoders.questions
    assert "span head newly initialized" in (folder / "log").read_text(encoding="utf-8")
    validations = json_lines((folder / "log").read_text(encoding="utf-8"), "valid")
    best = max(validations, key=lambda entry: float(entry["valid_f1"]))
    checkpoint = folder / "checkpoint_best.pt"
    assert float(best["valid_f1"]) > 60
    results = here / "results" / "tasks"
    given = (questions, checkpoint, "--out", here / "results" / "answers", "--batch-size", "7")
    outputs = ("--results", results, "--pretrained", encoders.checkpoint("diet-rel"))
    splits = ("valid", "test_xquad_en", "test_mlqa_de")
    assert called("answer", *given, "--split", *splits, *outputs) == 0
    scores = f"f1 {float(best['valid_f1']):.4f} exact_match {float(best['valid_exact_match']):.4f}"
    cells = capsys.readouterr().out.split("\n")[0].split("\t")
    assert cells[:4] == ["SQuAD", "valid", "30 questions", scores]
    (result,) = read_task_results(results / "SQuAD.jsonl")
    assert f"{result.score:.4f}" == f"{float(best['valid_f1']):.4f}"
    assert (result.split, result.language, result.main_metric) == ("valid", "en", "f1")
    assert_facts(result, encoders, checkpoint)
    assert (result.batch, result.chosen_by) == (32, "valid f1")
    assert (result.examples, result.train_examples) == (30, 160)
    (foreign,) = read_task_results(results / "MLQA.jsonl")
    assert (foreign.language, foreign.split) == ("de", "test_mlqa_de")
    assert "scored as mlqa" in foreign.notes
    assert (results / "XQuAD.jsonl").exists()

    assert result.predictions == "results/answers/valid/predictions.json"
    assert_answers(Path(result.predictions), questions / "valid.json")
    assert called("verify", result.predictions, "--references", questions / "valid.json") == 0
    verified = json.loads(capsys.readouterr().out)
    assert scores == f"f1 {verified['f1']:.4f} exact_match {verified['exact_match']:.4f}"
    assert verified["total"] == 30

    # A file is cut as the questions for training were, so it gets the same answers.
    file = ("--file", questions / "valid.json", "--n-best", "3", "--out", here / "again")
    assert called("answer", questions, checkpoint, *file) == 0
    again = here / "again" / "predictions.json"
    assert again.read_bytes() == Path(result.predictions).read_bytes()
    few = json.loads((here / "again" / "nbest.json").read_text(encoding="utf-8"))
    assert {len(answers) for answers in few.values()} == {3}


def assert_answers(predictions: Path, questions: Path) -> None:
    """Every answer is text of its context, and the best of a list of n."""
    texts = json.loads(predictions.read_text(encoding="utf-8"))
    read = read_squad(questions)
    assert texts.keys() == {question.id for question in read}
    listed = json.loads((predictions.parent / "nbest.json").read_text(encoding="utf-8"))
    for question in read:
        start, text = listed[question.id][0]["answer_start"], texts[question.id]
        assert text == listed[question.id][0]["text"]
        assert question.context[start : start + len(text)] == text
        odds = [other["probability"] for other in listed[question.id]]
        assert odds == sorted(odds, reverse=True)
        assert sum(odds) == pytest.approx(1)


def test_questions_that_cannot_be_answered(
    encoders: Encoders, tmp_path: Path, capsys: Captured
) -> None:
    content = json.loads((encoders.questions / "valid.json").read_text(encoding="utf-8"))
    for article in content["data"][:10]:
        article["paragraphs"][0]["qas"][0].update(answers=[], is_impossible=True)
    file = tmp_path / "v2.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    given = (encoders.questions, encoders.answering / "checkpoint_best.pt", "--file", file)
    for name, threshold in (("never", "1e9"), ("always", "-1e9")):
        more = ("--out", tmp_path / name, f"--threshold={threshold}")
        assert called("answer", *given, *more) == 0
        texts = json.loads((tmp_path / name / "predictions.json").read_text(encoding="utf-8"))
        assert all(bool(text) == (name == "never") for text in texts.values())
    assert "NoAns_exact_match 100.0000" in capsys.readouterr().out
    odds = tmp_path / "never" / "null_odds.json"
    predictions = tmp_path / "never" / "predictions.json"
    assert called("verify", predictions, "--references", file, "--null-odds", odds) == 0
    verified = json.loads(capsys.readouterr().out)
    assert verified["best_f1"] >= max(verified["f1"], 100 / 3)
    assert verified["NoAns_f1"] == 0


# The words after {NAME} for a thing of the encoders, and what the line names.
REFUSED = [
    ("predict {RTE} {pretrained}", "masked_lm"),
    ("answer {qa} {best} --split test --out out", "about.json"),
    ("answer {qa} {best} --file {qa}/train.json --scoring mlqa --out out", "MLQA"),
]


@pytest.mark.parametrize(("words", "datum"), REFUSED)
def test_bad_input_is_one_line(
    encoders: Encoders, here: Path, words: str, datum: str, capsys: Captured
) -> None:
    known = {
        "RTE": encoders.task("RTE"),
        "pretrained": encoders.checkpoint("diet-rel"),
        "qa": encoders.questions,
        "best": encoders.answering / "checkpoint_best.pt",
    }
    capsys.readouterr()
    assert called(*words.format(**known).split()) == 2
    error = capsys.readouterr().err
    assert datum in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not (here / "out").exists()
