"""Rows are read as written, replaced by the same evaluation alone, and checked."""

from __future__ import annotations

import json
import lzma
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from diet_mt.evaluation.json_rows import parse_row, read_rows, write_rows
from diet_mt.evaluation.options import shell
from diet_mt.evaluation.records import Result, TaskResult, put_row, read_results, read_task_results
from diet_mt.system.errors import UserError

from .rows import put, row, task_row


def test_a_row_reads_as_it_was_written() -> None:
    # U+2028 ends a line for str.splitlines, not here.
    result = row(test_set="flickr \u2028 2016", system='a "quoted" ü name', lenpen=-1.0)
    line = result.to_json()
    assert "\n" not in line
    assert parse_row(Result, line) == result
    fields = json.loads(line)
    assert parse_row(Result, json.dumps({**fields, "bleu": 31})).bleu == 31
    positions = {"encoding": "x", "rank": 128, "scale": 0.5, "shared": True, "clip": None}
    task = task_row(positions=positions, notes=["train: 744 of 392,702 \u2028 rows"])
    assert parse_row(TaskResult, task.to_json()) == task
    assert task.score == 30.5
    del fields["options"], fields["subwords"]  # with a default
    assert parse_row(Result, json.dumps(fields)) == row(**{**vars(result), "options": {}})


# Fields of a row, and what the error names.
WRONG_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"seed": "1"}, "'seed' is '1'.*int"),
    ({"bleu": True}, "'bleu' is True"),
    ({"system": None}, "'system' is None"),
    ({"blue": 30.0}, "'blue'"),
    ({"bleu": math.nan}, "'bleu' is nan"),
    ({"tokens_per_second": 10**400}, "tokens_per_second"),
    ({"bleu": 100.5}, "'bleu' is 100.5"),
    ({"chrf": -0.1}, "'chrf'"),
    ({"system": "a\nb"}, r"'system' is 'a\\nb'"),
    ({"device": "\ud800"}, "'device'"),
    ({"training": "--lr 0.1"}, "'training' is '--lr 0.1'"),
    ({"training": {"lr": {}}}, "'training'"),
    ({"training": {"lr": "a\x1b[31m"}}, "'training'"),
    ({"hypotheses": "../x"}, "'hypotheses' is '../x'"),
    ({"hypotheses": "a/../../x"}, "'hypotheses'"),
    ({"corpus": "../x"}, "'corpus' is '../x'"),
    ({"corpus": ""}, "'corpus'"),
]
WRONG_FIELDS_OF_TASKS: list[tuple[dict[str, Any], str]] = [
    ({"metrics": {"matthews": "30"}}, "metrics"),
    ({"positions": {"rank": [1]}}, "positions"),
    ({"main_metric": "f1"}, "main_metric"),
    ({"task": "../x"}, "'task' is '../x'"),
]


@pytest.mark.parametrize(
    ("right", "changes", "named"),
    [(row(), *case) for case in WRONG_FIELDS]
    + [(task_row(), *case) for case in WRONG_FIELDS_OF_TASKS],
)
def test_a_wrong_field_is_named(
    right: Result | TaskResult, changes: dict[str, Any], named: str
) -> None:
    fields = json.loads(right.to_json())
    with pytest.raises(UserError, match=named):
        parse_row(type(right), json.dumps({**fields, **changes}))


MISSING = row().to_json().replace('"bleu": 31.25, ', "")


@pytest.mark.parametrize("second", ["{", "[1]", "31.5", MISSING])
def test_a_bad_line_is_placed(tmp_path: Path, second: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(row().to_json() + "\n" + second + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.jsonl, line 2: "):
        read_results(file)
    with pytest.raises(UserError, match=r"gone\.jsonl"):
        read_results(tmp_path / "gone.jsonl")


def test_packed_rows_are_the_same_bytes_and_no_bomb_is_unpacked(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl.xz", tmp_path / "two.jsonl.xz"
    for path in (one, two):
        write_rows(path, [row()])
    assert one.read_bytes() == two.read_bytes()
    assert read_rows(Result, one) == [row()]
    one.write_bytes(lzma.compress(b" " * (1 << 25)))
    with pytest.raises(UserError, match=r"one\.jsonl\.xz: "):
        read_rows(Result, one)


def test_the_same_evaluation_takes_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "refs.de").write_text("eins\n", encoding="utf-8")
    results = [row(), row(seed=2, hypotheses="toy.en-de/diet_rel_tiny.2.hyp.txt"), row(bleu=40.0)]
    stored = [
        put(tmp_path / "results", result, [text], tmp_path / "refs.de")
        for result, text in zip(results, ("eins", "zwei", "drei"), strict=True)
    ]
    file = tmp_path / "results" / "toy.en-de.jsonl"
    assert read_results(file) == [stored[2], stored[1]]
    texts = {each.seed: (file.parent / each.hypotheses).read_text() for each in results[1:]}
    assert texts == {1: "drei\n", 2: "zwei\n"}
    assert not list(tmp_path.rglob("*.part"))
    # Again, nothing is written.
    files = [file, *(file.parent / each.hypotheses for each in results[1:])]
    before = [path.stat().st_mtime_ns for path in files]
    put(tmp_path / "results", results[2], ["drei"], tmp_path / "refs.de")
    assert [path.stat().st_mtime_ns for path in files] == before
    files[1].write_text("spoilt")
    put(tmp_path / "results", results[1], ["zwei"], tmp_path / "refs.de")
    put(tmp_path / "results", results[2], ["drei"], tmp_path / "refs.de")
    assert [path.read_text() for path in files[1:]] == ["zwei\n", "drei\n"]


TRAINED = shell(row().training) + " --lr 0.1 --max-tokens 8000 --betas '(0.9, 0.98)'"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"training": TRAINED.replace("0.1", "0.2")}, r"--lr: .*'0\.1'.*'0\.2'"),
        ({"training": TRAINED + " --pre-norm"}, "--pre-norm"),
        ({"training": TRAINED.replace("data/bin", "more/bin")}, "more/bin"),
        ({"training": ""}, "the command"),
        ({"training": TRAINED + " --update-freq 2"}, "'8000'.*'16000'"),
        ({"positions": "diet-rel sharing=layer-wise"}, "sharing=none"),
        ({"positions": row().encoding + " rank=64"}, "rank=64"),
        ({"model": "encoder-layers=6"}, "encoder-layers=6"),
        ({"averaged": 5}, "averaged"),
        ({"parameters": 7}, "'1234567'.*'7'"),
        ({"subwords": "spm"}, "subwords"),
        ({"references_sha256": "f" * 64}, "references_sha256"),
        ({"source_mended": "3 lines, rules 1"}, "3 lines"),
    ],
)
def test_another_training_does_not_take_the_place(
    tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    first = row(training=TRAINED)
    file = put_row(tmp_path, first)
    other = row(**{"training": TRAINED, "checkpoint_sha256": "0" * 64, **changes})
    with pytest.raises(UserError, match=named):
        put_row(tmp_path, other)
    assert read_results(file) == [first]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (TRAINED, TRAINED.replace("--seed 1", "--seed 2").replace("checkpoints/", "/mnt/")),
        (TRAINED, TRAINED + " --user-dir ../diet_mt --tensorboard-logdir x --cpu"),
        (TRAINED, TRAINED.replace("8000", "2000 --distributed-world-size 2 --update-freq 2")),
        (TRAINED, TRAINED.replace("--lr 0.1", "--lr 3 --lr=0.1")),
    ],
)
def test_the_same_training_elsewhere_does(tmp_path: Path, first: str, again: str) -> None:
    put_row(tmp_path, row(training=first))
    other = row(training=again, checkpoint_sha256="0" * 64)
    assert read_results(put_row(tmp_path, other)) == [other]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({"training": ""}, {}),  # its command was unknown
        ({}, {"positions": row().encoding + " rank=64", "model": "encoder-layers=6"}),
    ],
)
def test_the_same_checkpoint_does_whatever_its_row_said(
    tmp_path: Path, first: dict[str, Any], again: dict[str, Any]
) -> None:
    put_row(tmp_path, row(**first))
    assert read_results(put_row(tmp_path, row(**again))) == [row(**again)]


def test_rows_written_at_the_same_time_all_stay(tmp_path: Path) -> None:
    (tmp_path / "refs.de").write_text("eins\n", encoding="utf-8")
    rows = [row(seed=seed, hypotheses=f"toy.en-de/x.{seed}.hyp.txt") for seed in range(16)]
    with ThreadPoolExecutor(8) as pool:
        each = pool.map(lambda r: put(tmp_path, r, [str(r.seed)], tmp_path / "refs.de"), rows)
        stored = list(each)
    saved = read_results(tmp_path / "toy.en-de.jsonl")
    assert sorted(saved, key=lambda result: result.seed) == stored


def test_the_same_run_takes_its_own_place(tmp_path: Path) -> None:
    other = task_row(seed=2)
    again = task_row(metrics={"matthews": 31.0}, date="2026-02-03", checkpoint_sha256="c" * 64)
    rest = [
        *(task_row(split="valid1"), task_row(lr=1e-5), task_row(segments="input")),
        *(task_row(model="encoder-layers=6"), task_row(parameters=9_000_000)),
        task_row(pretrained_sha256="d" * 64),
        task_row(positions={"encoding": "diet-rel", "sharing": "head-wise"}),
    ]
    for each in (task_row(), other, *rest, again):
        assert put_row(tmp_path / "tasks", each) == tmp_path / "tasks" / "CoLA.jsonl"
    assert read_task_results(tmp_path / "tasks" / "CoLA.jsonl") == [again, other, *rest]
    training, changed = task_row().training, {"checkpoint_sha256": "e" * 64}
    with pytest.raises(UserError, match=r"--dropout: .*'0\.3'"):
        put_row(tmp_path / "tasks", task_row(**changed, training={**training, "dropout": 0.3}))
    elsewhere = {**training, "save-dir": "elsewhere", "finetune-from-model": "b.pt"}
    put_row(tmp_path / "tasks", task_row(**changed, training=elsewhere))
    assert read_task_results(tmp_path / "tasks" / "CoLA.jsonl")[0].training == elsewhere
