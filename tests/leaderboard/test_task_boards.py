"""The tables of encoders, as a reader sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.glue import TASKS
from diet_mt.blocks import markdown
from diet_mt.evaluation.task_records import TaskResult, put_task_result
from diet_mt.leaderboard.task_boards import task_board

from ..calling import called
from ..evaluation.task_rows import accuracies, task_row


def task_markdown(rows: list[TaskResult]) -> str:
    return markdown(task_board(rows))


def rows_of(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.split("\n")
        if line.startswith("|")
    ]


def test_the_papers_row_stands_beside_ours() -> None:
    rows = [
        task_row(),
        task_row(seed=2, metrics={"matthews": 32.0}),
        *accuracies("RTE", [50.25, 54.25], notes=["train: 9 of 2,490 official rows"]),
        task_row(system="none", segments="none", options={"arch": "roberta_none_tiny"}),
    ]
    text = task_markdown(rows)
    table = rows_of(text)
    assert table[0] == ["system", "segments", "CoLA", "RTE"]
    assert table[2:] == [
        ["diet-rel (tiny)", "per-head", "31.2 (2)", "52.2 (2)"],
        ["paper: DIET-REL", "per-head", "60.3", ""],
        ["none (tiny)", "none", "30.5 (1)", ""],
    ]
    assert "pretrained for 10,000 updates, perplexity 21.5." in text
    assert "  - CoLA: lr 3e-05, epochs 5, batch 32: 30.50 (1), 32.00 (2)\n" in text
    assert "50.25 (1), 54.25 (2); train: 9 of 2,490 official rows\n" in text
    assert text.count("fairseq-train data/CoLA --seed 1") == 1
    assert "paper: Chen et al. 2021, tables 2, 3, 5, 8 and 9" in text
    assert "average" not in table[0]


def test_tasks_that_the_paper_has_not_have_no_row_of_it_and_no_source() -> None:
    text = task_markdown([*accuracies("RTE", [50.0])])
    assert "RTE" in text
    assert "paper:" not in text


def test_every_official_metric_has_a_column() -> None:
    rows = [
        task_row(task="MRPC", metrics={"accuracy": 70.0, "f1": 82.0}, main_metric="accuracy"),
        task_row(task="STS-B", metrics={"spearman": 23.0, "pearson": 24.0}, main_metric="spearman"),
    ]
    table = rows_of(task_markdown(rows))
    assert table[0] == ["system", "segments", "STS-B", "MRPC", "MRPC F1", "STS-B Pearson"]
    assert table[2][2:] == ["23.0 (1)", "70.0 (1)", "82.0 (1)", "24.0 (1)"]
    without = rows_of(task_markdown(accuracies("MRPC", [70.0])))
    assert without[0] == ["system", "segments", "MRPC"]


def test_questions_have_a_dev_set() -> None:
    """SQuAD's, where nothing else was tested; it has no languages to tell apart."""

    def answers(f1: float, exact: float, **more: object) -> TaskResult:
        metrics = {"f1": f1, "exact_match": exact}
        return task_row(metrics=metrics, main_metric="f1", **more)

    dev = answers(50, 40, task="SQuAD")
    text = task_markdown([dev])
    assert rows_of(text)[0] == ["system", "segments", "SQuAD", "SQuAD EM"]
    assert rows_of(text)[2:] == [["diet-rel (tiny)", "per-head", "50.0 (1)", "40.0 (1)"]]
    assert "by language" not in text
    tested = answers(30, 20, task="TyDiQA-GoldP", split="test_tydiqa_fi", language="fi")
    table = rows_of(task_markdown([dev, tested]))
    assert table[0] == ["system", "segments", "TyDiQA", "TyDiQA EM", "SQuAD", "SQuAD EM"]
    assert table[2][2:] == ["30.0 (1)", "20.0 (1)", "50.0 (1)", "40.0 (1)"]
    assert table[3][:2] == ["paper: DIET-REL", "per-head"]


def test_the_average_wants_every_column_of_the_paper() -> None:
    tasks = ("MNLI", "QQP", "QNLI", "SST-2", "CoLA", "STS-B")
    rows = [
        task_row(
            task=task,
            metrics=dict.fromkeys(TASKS[task].metrics, 60.0 + number),
            main_metric=TASKS[task].metrics[0],
        )
        for number, task in enumerate(tasks)
    ]
    rows += accuracies("MNLI", [67], split="valid1")
    published = {"sharing": "head-wise", "clip": "1023", "values": "True"}
    rows += accuracies("MNLI", [10], system="shaw", segments="input", options=published)
    rows += accuracies("WNLI", [50])
    table = rows_of(task_markdown(rows))
    assert table[0][-4:] == ["WNLI", "QQP F1", "STS-B Pearson", "average"]
    assert table[2][-1] == "63.1"  # (60 + 61 + 62 + 63 + 64 + 65 + 67) / 7
    assert table[3][-1] == "85.2"
    assert table[4][-1] == ""
    assert table[5][:3] == ["paper: Shaw et al. 2018", "input", "86.3"]


def test_languages_have_a_table_of_their_own() -> None:
    rows = [
        *accuracies("XNLI", [40, 42], split="test_sw", language="sw"),
        *accuracies("XNLI", [60, 62], split="test_en"),
    ]
    table = rows_of(task_markdown(rows))
    assert table[0] == ["system", "segments", "XNLI"]
    assert table[2][2] == "51.0 (2)"
    assert " Our languages: XNLI en sw. " in task_markdown(rows)
    assert table[3] == ["paper: DIET-REL", "per-head", "68.4"]
    assert table[4] == ["system", "segments", "en", "sw"]
    assert table[6] == ["diet-rel (tiny)", "per-head", "61.0 (2)", "41.0 (2)"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for row in (task_row(), task_row(system="shaw", segments="input")):
        file = put_task_result(tmp_path, row)
    assert called("leaderboard", file, "--systems", "shaw") == 0
    text = capsys.readouterr().out
    assert "shaw (tiny)" in text
    assert "diet-rel" not in text
    assert called("leaderboard", file, "--systems", "bert") == 2
    said = "error: unknown system bert; choose from diet-rel, shaw\n"
    assert capsys.readouterr().err == said
    for spelled in ("diet-rel", "diet_rel"):
        assert called("leaderboard", file, "--systems", spelled) == 0
        assert "shaw (tiny)" not in capsys.readouterr().out
    assert called("leaderboard", file, "--format", "html") == 0
    assert '<td class="text">diet-rel (tiny)</td>' in capsys.readouterr().out
