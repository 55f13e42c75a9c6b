"""Fine-tuning and evaluation of toy tasks, from a toy of a pretrained encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diet_mt.bert.glue import task_named
from diet_mt.errors import UserError
from diet_mt.evaluation.checkpoint import model_options, read_pretrained
from diet_mt.evaluation.predict import Predictions, for_server
from diet_mt.evaluation.records import read_task_results
from diet_mt.files import sha256

from ..calling import called
from .encoder_place import SIZES, EncoderPlace
from .runner import Done


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
    assert result.checkpoint_sha256 == sha256(checkpoint)
    assert (result.pretrained_sha256, result.pretrain_updates) == (sha256(place.pretrained), 20)
    assert (
        result.pretrain_perplexity == read_pretrained(place.pretrained)["pretrain_perplexity"] > 1
    )
    assert (result.model["encoder-layers"], result.model["max-source-positions"]) == (2, 24)
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
    submitted = ("--split", "test", "--predictions", tmp_path / "submission")
    assert called("predict", *given[:2], *submitted) == 0
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
    assert called("predict", data, checkpoint, "--split", "test", "--predictions", tmp_path) == 0
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
        (["{glue}", "{pretrained}"], "unknown task glue; choose from CoLA"),
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
