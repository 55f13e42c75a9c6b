"""Results of fine-tuning survive being written and read; bad ones are refused with their place."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.records import TaskResult, put_row_of, read_task_results

from .task_rows import task_row


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_row_reads_as_it_was_written(tmp_path: Path) -> None:
    positions = {"encoding": "x", "rank": 128, "scale": 0.5, "shared": True, "clip": None}
    row = task_row(positions=positions, notes=["train: 744 of 392,702 \u2028 rows"])
    assert read_task_results(written(tmp_path / "a", row.to_json())) == [row]
    assert row.score == 30.5


def test_fields_with_a_default_may_be_missing(tmp_path: Path) -> None:
    fields = json.loads(task_row().to_json())
    for name in ("examples", "train_examples", "updates", "chosen_by", "predictions", "notes"):
        del fields[name]
    assert read_task_results(written(tmp_path / "a", json.dumps(fields))) == [task_row()]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"metrics": {"matthews": "30"}}, "'metrics' is .*, expected dict"),
        ({"metrics": [30]}, "'metrics' is"),
        ({"notes": "x"}, "'notes' is 'x', expected list"),
        ({"positions": {"rank": [1]}}, "'positions' is"),
        ({"lr": "3e-5"}, "'lr' is '3e-5', expected float"),
        ({"main_metric": "f1"}, "main_metric 'f1' of CoLA is none of"),
        ({"task": "../x"}, "task '../x'"),
        ({"tusk": "x"}, "unknown field 'tusk'"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    line = json.dumps({**json.loads(task_row().to_json()), **changes})
    with pytest.raises(UserError, match=f"a, line 2: .*{complaint}"):
        read_task_results(written(tmp_path / "a", task_row().to_json(), line))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_metric_is_a_number(value: float) -> None:
    with pytest.raises(UserError, match=r"'metrics' is .* expected a finite number"):
        task_row(metrics={"matthews": value})


def test_the_same_run_takes_its_own_place(tmp_path: Path) -> None:
    other = task_row(seed=2)
    again = task_row(metrics={"matthews": 31.0}, date="2026-02-03", checkpoint_sha256="c" * 64)
    rest = [task_row(split="valid1"), task_row(lr=1e-5), task_row(segments="input")]
    for row in (task_row(), other, *rest, again):
        assert put_row_of(tmp_path / "tasks", row) == tmp_path / "tasks" / "CoLA.jsonl"
    assert read_task_results(tmp_path / "tasks" / "CoLA.jsonl") == [again, other, *rest]


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "encoder-layers=6"},
        {"parameters": 9_000_000},
        {"pretrained_sha256": "d" * 64},
        {"positions": {"encoding": "diet-rel", "sharing": "head-wise"}},
    ],
    ids=str,
)
def test_another_model_has_a_row_of_its_own(tmp_path: Path, changes: dict[str, Any]) -> None:
    rows = [
        task_row(model="encoder-layers=3"),
        task_row(**{"model": "encoder-layers=3", **changes}),
    ]
    for row in rows:
        put_row_of(tmp_path, row)
    assert read_task_results(tmp_path / "CoLA.jsonl") == rows


def test_another_training_takes_nobodys_place(tmp_path: Path) -> None:
    put_row_of(tmp_path, task_row())
    training, other = task_row().training, {"checkpoint_sha256": "c" * 64}
    with pytest.raises(UserError, match=r"\(--dropout: not given there, '0.3'"):
        put_row_of(tmp_path, task_row(**other, training={**training, "dropout": 0.3}))
    elsewhere = {**training, "save-dir": "elsewhere", "finetune-from-model": "b.pt"}
    put_row_of(tmp_path, task_row(**other, training=elsewhere))
    assert [row.training for row in read_task_results(tmp_path / "CoLA.jsonl")] == [elsewhere]


def test_rows_written_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    rows = [task_row(seed=seed) for seed in range(40)]

    def put(row: TaskResult) -> None:
        put_row_of(tmp_path, row)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, rows))
    found = read_task_results(tmp_path / "CoLA.jsonl")
    assert sorted(found, key=lambda row: row.seed) == rows
    assert not list(tmp_path.glob("*.part"))
