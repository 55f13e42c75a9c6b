"""Fine-tuning and evaluation of toy tasks, from a toy of a pretrained encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diet_mt.bert.glue import task_named
from diet_mt.errors import UserError
from diet_mt.evaluation.predict import Predictions, for_server
from diet_mt.evaluation.pretrained import model_options, read_pretrained
from diet_mt.evaluation.records import sha256
from diet_mt.evaluation.task_records import read_task_results

from ..calling import called
from ..session_folder import session_folder
from .encoder_place import SIZES, EncoderPlace
from .runner import ROOT, Done, Runner
from .scripts import run

FINETUNE_GLUE = ROOT / "scripts" / "finetune-glue.sh"
FINETUNE_XNLI = ROOT / "scripts" / "finetune-xnli.sh"


@pytest.fixture(scope="session")
def place(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> EncoderPlace:
    folder = session_folder(tmp_path_factory) / "encoders"
    folder.mkdir(exist_ok=True)
    return EncoderPlace(folder, runner)


def validations(done: Done) -> list[dict[str, Any]]:
    """What fairseq prints of each validation, in JSON."""
    lines = (done.stdout + done.stderr).split("\n")
    found = [json.loads(line[line.index("{") :]) for line in lines if '"valid_loss"' in line]
    assert found, done.tail()
    return found


def test_a_model_learns_and_its_evaluation_agrees(
    place: EncoderPlace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    done = place.fine_tune("CoLA", tmp_path / "run").ok()
    best = max(float(each["valid_matthews"]) for each in validations(done))
    assert best > 60  # one word decides; nothing is learnt: 0
    checkpoint = tmp_path / "run" / "checkpoint_best.pt"
    data, results = place.task("CoLA"), tmp_path / "results" / "tasks"
    kept = ["--results", str(results), "--predictions", str(tmp_path / "results" / "predictions")]
    given = [str(data), str(checkpoint), *kept, "--pretrained", str(place.pretrained)]
    assert called("predict", *given) == 0
    assert f"CoLA\tvalid\t{SIZES['dev']} examples\tmatthews {best:.4f}\t" in capsys.readouterr().out
    (result,) = read_task_results(results / "CoLA.jsonl")
    assert result.score == best
    assert (result.system, result.segments) == ("diet-rel", "per-head")
    assert (result.seed, result.lr, result.epochs, result.batch) == (1, 0.003, 6, 16)
    assert result.chosen_by == "valid matthews"
    assert result.checkpoint == sha256(checkpoint)
    facts = read_pretrained(place.pretrained)
    assert (result.pretrained, result.pretrain_updates) == (sha256(place.pretrained), 20)
    assert result.pretrain_perplexity == facts.perplexity > 1
    assert (result.examples, result.train_examples) == (SIZES["dev"], SIZES["train"])
    assert result.notes == ["train: 160 of 8,551 official rows", "valid: 37 of 1,043 official rows"]

    assert not Path(result.predictions).is_absolute()
    table = Path(result.predictions).read_text(encoding="utf-8").split("\n")
    assert table[0] == "index\tprediction\tlabel"
    rows = [line.split("\t") for line in table[1:-1]]
    assert [row[0] for row in rows] == [str(number) for number in range(SIZES["dev"])]
    assert [row[2] for row in rows] == [str(number % 2) for number in range(SIZES["dev"])]
    right = sum(row[1] == row[2] for row in rows) / len(rows)
    assert result.metrics["accuracy"] == pytest.approx(100 * right, abs=1e-4)

    # Another evaluation of the same run takes its place; a set without labels is only predicted.
    assert called("predict", *given) == 0
    assert len(read_task_results(results / "CoLA.jsonl")) == 1
    capsys.readouterr()
    assert (
        called(
            "predict", *given[:2], "--split", "test", "--predictions", str(tmp_path / "submission")
        )
        == 0
    )
    assert f"CoLA\ttest\t{SIZES['test']} examples\t-> " in capsys.readouterr().out
    submission = (tmp_path / "submission" / "CoLA.tsv").read_text(encoding="utf-8").split("\n")
    assert submission[0] == "index\tprediction"
    assert [line.split("\t")[0] for line in submission[1:-1]] == [str(n) for n in range(11)]
    assert called("predict", *given, "--split", "test") == 2
    assert "test of CoLA has no labels; leave --results out" in capsys.readouterr().err


def test_scores_are_regressed(
    place: EncoderPlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = place.fine_tune("STS-B", tmp_path, "--max-epoch", 2).ok()
    last = validations(done)[-1]
    checkpoint, data = str(tmp_path / "checkpoint_last.pt"), str(place.task("STS-B"))
    assert (
        called("predict", data, checkpoint, "--split", "test", "--predictions", str(tmp_path)) == 0
    )
    capsys.readouterr()
    rows = (tmp_path / "STS-B.tsv").read_text(encoding="utf-8").split("\n")[1:-1]
    scores = np.array([float(row.split("\t")[1]) for row in rows])
    assert ((scores >= 0) & (scores <= 5)).all()
    assert called("predict", data, checkpoint, "--batch-size", "3") == 0
    expected = "\t".join(
        f"{name} {float(last[f'valid_{name}']):.4f}" for name in ("spearman", "pearson")
    )
    # Of -100 to 100. Batches of another size add the same numbers in another order, and scores that
    # are almost equal then change their ranks.
    found = capsys.readouterr().out.strip().split("\t")[2:]
    for one, two in zip(found[1:], expected.split("\t"), strict=True):
        assert one.split(" ")[0] == two.split(" ")[0]
        assert float(one.split(" ")[1]) == pytest.approx(float(two.split(" ")[1]), abs=0.5)


def test_scores_for_the_server_are_within_the_bounds_of_the_labels() -> None:
    found = Predictions(np.array([-0.5, 2.5, 5.5]), None)
    assert for_server(task_named("STS-B"), found).predicted.tolist() == [0.0, 2.5, 5.0]
    assert for_server(task_named("RTE"), found) is found


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["{RTE}", "{pretrained}"], "a model of the task masked_lm; fine-tune first"),
        (["{RTE}", "gone.pt"], "gone.pt: no such checkpoint"),
        (["{glue}", "{pretrained}"], "task 'glue': choose from CoLA"),
    ],
)
def test_bad_input_is_one_line(
    place: EncoderPlace, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"RTE": place.task("RTE"), "pretrained": place.pretrained, "glue": place.glue}
    capsys.readouterr()
    assert called("predict", *(argument.format(**known) for argument in arguments)) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_the_pretrained_model_is_built_again(place: EncoderPlace) -> None:
    words = model_options(place.pretrained, "diet_rel")
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given == {
        "--arch": "roberta_diet_rel_tiny",
        "--encoder-layers": "2",
        "--encoder-embed-dim": "32",
        "--encoder-ffn-embed-dim": "48",
        "--encoder-attention-heads": "2",
        "--max-source-positions": "24",
        "--max-positions": "24",
    }
    with pytest.raises(UserError, match="pretrained with diet-rel, not learned"):
        model_options(place.pretrained, "learned")


def options_of(line: str) -> dict[str, str]:
    words = line.replace("\\", "").split(" ")
    return dict(zip(words, [*words[1:], ""], strict=True))


def test_the_grid_is_that_of_table_7(place: EncoderPlace, tmp_path: Path) -> None:
    given = {"DRY_RUN": "1", "DATA": place.task("CoLA"), "CHECKPOINTS": "runs"}
    said = run(FINETUNE_GLUE, "CoLA", "diet_rel", place.pretrained, cwd=tmp_path, **given)
    runs = [options_of(line) for line in said.split("\n") if line.startswith("fairseq-train")]
    grid = {(each["--lr"], each["--max-epoch"], each["--seed"]) for each in runs}
    assert len(runs) == len(grid) == 40
    assert {lr for lr, _, _ in grid} == {"1e-5", "2e-5", "3e-5", "4e-5"}
    assert {epochs for _, epochs, _ in grid} == {"5", "10"}
    assert {seed for _, _, seed in grid} == {"1", "2", "3", "4", "5"}
    for each in runs:
        assert (each["--batch-size"], each["--save-interval-updates"]) == ("32", "3500")
        updates = 5 * int(each["--max-epoch"])  # 160 examples: 5 updates an epoch
        assert each["--total-num-update"] == str(updates)
        assert each["--warmup-updates"] == str(updates // 10)  # a proportion of 0.1
        assert each["--segment-encoding"] == "per-head"
        assert each["--best-checkpoint-metric"] == "matthews"
        assert each["--encoder-embed-dim"] == "32"
    assert list(tmp_path.iterdir()) == []


GRID = {
    "GRID": "small",
    "LRS": "3e-3",
    "EPOCHS": "1",
    "SEEDS": "1 2",
    "SEGMENTS": "input",
    "CHECKPOINTS": "runs",
    "KEEP": "0",
}
OPTION = ("--adam-betas", "(0.8, 0.9)")


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.slow
def test_a_small_grid_goes_all_the_way_and_continues(place: EncoderPlace, tmp_path: Path) -> None:
    given = {**GRID, "DATA": place.task("RTE"), "TEST": "1"}
    arguments = ("RTE", "diet-rel", place.pretrained, *OPTION)
    first = run(FINETUNE_GLUE, *arguments, cwd=tmp_path, **given)
    rows = read_task_results(tmp_path / "results" / "tasks" / "RTE.jsonl")
    assert sorted((row.seed, row.lr, row.segments) for row in rows) == [
        (1, 0.003, "input"),
        (2, 0.003, "input"),
    ]
    assert all("--adam-betas '(0.8, 0.9)'" in row.commands[0] for row in rows)
    assert (tmp_path / "runs" / "predictions" / "RTE.tsv").exists()
    assert "| diet-rel (tiny) | input |" in first
    assert "| paper:" not in first  # the paper's table has no RTE
    before = times(tmp_path / "runs")
    second = run(FINETUNE_GLUE, *arguments, cwd=tmp_path, **{**given, "TEST": "0"})
    assert "| diet-rel (tiny) | input |" in second
    assert times(tmp_path / "runs") == before


@pytest.fixture
def stand_ins(tmp_path: Path) -> dict[str, Any]:
    """Settings with which nothing is trained: a fairseq-train that writes empty checkpoints, and a
    Python that says what the project's commands would. Seed 2 scores best.
    """
    programs = tmp_path / "programs"
    programs.mkdir()
    train = """#!/usr/bin/env bash
echo "$*" >>trained
while [ $# -gt 1 ]; do
  [ "$1" != --save-dir ] || save=$2
  shift
done
touch "$save"/checkpoint_{best,last,3_3500}.pt
"""
    python = """#!/usr/bin/env bash
case $* in
  *cli.finetuning*) printf -- '--arch\\nroberta_x_tiny\\n' ;;
  *cli.predict*) echo "$*" >>predicted
    case $* in *.2/*) score=100.0 ;; *) score=70.25 ;; esac
    words=${*#*--split } words=${words% --pretrained*}
    for split in $words; do
      printf 'RTE\\t%s\\t37 examples\\taccuracy %s\\tf1 80\\n' "$split" "$score"
    done ;;
  *cli.task_table*) echo "the table of ${*: -1}" ;;
esac
"""
    for name, text in (("fairseq-train", train), ("python", python)):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    (tmp_path / "RTE" / "input0").mkdir(parents=True)
    (tmp_path / "RTE" / "raw").mkdir()
    (tmp_path / "RTE" / "raw" / "train.id").write_text("0\n" * 33, encoding="utf-8")
    (tmp_path / "x.pt").touch()
    return {**GRID, "folder": programs, "PYTHON": programs / "python", "DATA": "RTE"}


def test_a_grid_keeps_its_best_run_and_runs_nothing_twice(
    tmp_path: Path, stand_ins: dict[str, Any]
) -> None:
    said = run(FINETUNE_GLUE, "RTE", "diet_rel", "x.pt", *OPTION, cwd=tmp_path, **stand_ins)
    assert "== the best run is lr3e-3.epochs1, seed 2" in said
    assert "the table of results/tasks/RTE.jsonl\n" in said
    trained = (tmp_path / "trained").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(trained) == 2
    for line in trained:
        assert "--arch roberta_x_tiny " in line
        assert "--finetune-from-model x.pt " in line
        assert "--total-num-update 2 --warmup-updates 0 --max-epoch 1" in line  # 33 by 32
        assert line.endswith("--adam-betas (0.8, 0.9)")
    predicted = (tmp_path / "predicted").read_text(encoding="utf-8").split("\n")[:-1]
    assert all("--system diet-rel --split valid --pretrained x.pt" in line for line in predicted)
    kept = [str(path.relative_to(tmp_path)) for path in (tmp_path / "runs").rglob("*.pt")]
    assert kept == ["runs/lr3e-3.epochs1.2/checkpoint_best.pt"]
    before = times(tmp_path)
    again = run(FINETUNE_GLUE, "RTE", "diet_rel", "x.pt", *OPTION, cwd=tmp_path, **stand_ins)
    assert "== the best run is lr3e-3.epochs1, seed 2" in again
    assert times(tmp_path) == before
    given = {**stand_ins, "SEEDS": "1 2 3"}
    more = run(FINETUNE_GLUE, "RTE", "diet_rel", "x.pt", *OPTION, cwd=tmp_path, **given)
    assert "3 runs" in more
    assert len((tmp_path / "trained").read_text(encoding="utf-8").split("\n")) == 4


def test_splits_that_came_later_are_evaluated(tmp_path: Path, stand_ins: dict[str, Any]) -> None:
    given = {**stand_ins, "KEEP": "1"}
    run(FINETUNE_GLUE, "RTE", "diet_rel", "x.pt", cwd=tmp_path, **given)
    (tmp_path / "predicted").unlink()
    (tmp_path / "RTE" / "label").mkdir()
    (tmp_path / "RTE" / "label" / "valid1.idx").touch()
    said = run(FINETUNE_GLUE, "RTE", "diet_rel", "x.pt", cwd=tmp_path, **given)
    assert said.count("RTE\tvalid1\t37 examples") == 2
    predicted = (tmp_path / "predicted").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(predicted) == 2
    assert all("--split valid1 --pretrained" in line for line in predicted)
    before = times(tmp_path)
    run(FINETUNE_GLUE, "RTE", "diet_rel", "x.pt", cwd=tmp_path, **given)
    assert times(tmp_path) == before
    for scores in (tmp_path / "runs").rglob("scores"):
        scores.unlink()
    (tmp_path / "runs" / "lr3e-3.epochs1.1" / "checkpoint_best.pt").unlink()
    said = run(FINETUNE_GLUE, "RTE", "diet_rel", "x.pt", cwd=tmp_path, status=2, **given)
    assert "1: its checkpoint was removed (KEEP=0), so valid valid1 cannot be scored" in said


def test_a_run_of_another_command_is_left_alone(tmp_path: Path, stand_ins: dict[str, Any]) -> None:
    run(FINETUNE_GLUE, "RTE", "diet-rel", "x.pt", cwd=tmp_path, **stand_ins)
    given = {**stand_ins, "BATCH": "16"}
    said = run(FINETUNE_GLUE, "RTE", "diet-rel", "x.pt", cwd=tmp_path, status=2, **given)
    assert "was begun with another command" in said


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"GRID": "large"}, "GRID 'large': choose paper or small"),
        ({"DATA": "gone"}, "gone: not there; run data-prep/prepare-xnli.sh"),
    ],
)
def test_a_wrong_setting_is_one_line(
    tmp_path: Path, settings: dict[str, str], complaint: str
) -> None:
    said = run(FINETUNE_XNLI, "diet-rel", "x.pt", cwd=tmp_path, status=2, **settings)
    assert said == f"error: {complaint}\n"
