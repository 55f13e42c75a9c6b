"""Rows are read as written, replaced by the same evaluation alone, and checked."""

from __future__ import annotations

import hashlib
import json
import math
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.hypotheses import put_result, read_hypotheses
from diet_mt.evaluation.json_rows import parse_row
from diet_mt.evaluation.options import shell
from diet_mt.evaluation.records import (
    Result,
    TaskResult,
    put_row_of,
    read_results,
    read_task_results,
)

from .rows import row
from .task_rows import task_row


def test_a_row_reads_as_it_was_written() -> None:
    # U+2028 ends a line for str.splitlines, not here.
    result = row(test_set="flickr \u2028 2016", system='a "quoted" ü name', lenpen=-1.0)
    line = result.to_json()
    assert "\n" not in line
    assert parse_row(Result, line) == result


def test_whole_numbers_pass_for_decimal_ones() -> None:
    fields = json.loads(row().to_json())
    assert parse_row(Result, json.dumps({**fields, "bleu": 31})).bleu == 31


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"seed": "1"}, "'seed' is '1', expected int"),
        ({"seed": 1.5}, "'seed' is 1.5"),
        ({"bleu": True}, "'bleu' is True"),
        ({"system": None}, "'system' is None"),
        ({"blue": 30.0}, "unknown field 'blue'"),
        ({"bleu": math.nan}, "'bleu' is nan, expected a finite number"),
        ({"lenpen": -math.inf}, "'lenpen' is -inf, expected a finite number"),
        ({"tokens_per_second": 10**400}, "expected a finite number"),
        ({"bleu": 100.5}, "'bleu' is 100.5, expected 0 to 100"),
        ({"chrf": -0.1}, "'chrf' is -0.1, expected 0 to 100"),
        ({"bleu_mean": 101}, "'bleu_mean' is 101, expected 0 to 100"),
        ({"bleu_ci": -1.0}, "'bleu_ci' is -1.0, expected 0 or more"),
        ({"sentences": -1}, "'sentences' is -1, expected 0 or more"),
        ({"parameters": -1}, "'parameters' is -1, expected 0 or more"),
        ({"system": "a\nb"}, r"'system' is 'a\\nb', expected text without control"),
        ({"test_set": "a\x1b[31m"}, "'test_set' is .* expected text without control"),
        ({"device": "\ud800"}, r"'device' is '\\ud800', expected text without .* surrogate"),
        ({"versions": {"torch": "2.13.0"}}, "'versions' is .*, expected fairseq"),
        ({"training": "--lr 0.1"}, "'training' is '--lr 0.1', expected"),
        ({"training": {"lr": {}}}, "'training' is .*, expected"),
        ({"training": {"lr": "a\x1b[31m"}}, "'training' is .* expected text without control"),
        ({"overrides": {"x": "a\u202eb"}}, "'overrides' is .* without marks that reorder text"),
        ({"parameters": 10**101}, "expected a finite number below 1e"),
        ({"precisions": "1/2/3"}, "'precisions' is '1/2/3', expected four numbers"),
        ({"system": "a\u202eb"}, "'system' is .* expected text without marks that reorder text"),
        ({"test_set": "a\u2066b"}, "'test_set' is .* expected text without marks"),
        ({"device": "a" * 10**6}, "'device' is .* at most 100,000 characters"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], complaint: str) -> None:
    fields = json.loads(row().to_json())
    with pytest.raises(UserError, match=complaint):
        parse_row(Result, json.dumps({**fields, **changes}))


def test_fields_with_a_default_may_be_missing() -> None:
    fields = json.loads(row().to_json())
    del fields["options"], fields["subwords"]
    assert parse_row(Result, json.dumps(fields)) == row(options={}, subwords="bpe")
    del fields["bleu"]
    with pytest.raises(UserError, match="no field 'bleu'"):
        parse_row(Result, json.dumps(fields))


NAN = row().to_json().replace("31.25", "NaN")


@pytest.mark.parametrize("second", ["{", "[1]", "31.5", NAN])
def test_a_bad_line_is_placed(tmp_path: Path, second: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(row().to_json() + "\n" + second + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.jsonl, line 2: (not |field 'bleu' is nan)"):
        read_results(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.jsonl: cannot be read"):
        read_results(tmp_path / "gone.jsonl")


def test_the_same_evaluation_takes_its_own_place(tmp_path: Path) -> None:
    first = row()
    second = row(seed=2, hypotheses="toy.en-de/diet_rel_tiny.2.hyp.txt")
    again = row(bleu=40.0)
    file = put_result(tmp_path / "results", first, "eins\n")
    put_result(tmp_path / "results", second, "zwei\n")
    put_result(tmp_path / "results", again, "drei\n")
    assert file == tmp_path / "results" / "toy.en-de.jsonl"
    assert read_results(file) == [again, second]
    kept = {result.seed: file.parent / result.hypotheses for result in read_results(file)}
    assert kept[1].read_text(encoding="utf-8") == "drei\n"
    assert kept[2].read_text(encoding="utf-8") == "zwei\n"
    assert not list(tmp_path.rglob("*.part"))


def test_the_same_row_again_writes_nothing(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"eins\n").hexdigest()
    result = row(hypotheses_sha256=digest)
    file = put_result(tmp_path, result, "eins\n")
    kept = [file, tmp_path / result.hypotheses]
    before = [path.stat().st_mtime_ns for path in kept]
    assert put_result(tmp_path, result, "eins\n") == file
    assert [path.stat().st_mtime_ns for path in kept] == before
    kept[1].write_text("spoilt")
    put_result(tmp_path, result, "eins\n")
    assert kept[1].read_text() == "eins\n"


def test_hypotheses_in_the_archive_are_not_written_again(tmp_path: Path) -> None:
    result = row(hypotheses_sha256=hashlib.sha256(b"eins\n").hexdigest())
    put_result(tmp_path, result, "eins\n")
    with tarfile.open(tmp_path / "toy.en-de.hyp.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / result.hypotheses, result.hypotheses)
    (tmp_path / result.hypotheses).unlink()
    for again in (result, row(hypotheses_sha256=result.hypotheses_sha256, threads=9)):
        file = put_result(tmp_path, again, "eins\n")
        assert read_results(file) == [again]
        assert not (tmp_path / result.hypotheses).exists()
        assert read_hypotheses(tmp_path, again) == ["eins"]


def test_a_row_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'system' is"):
        put_result(tmp_path / "results", row(system="a\nb"), "eins\n")
    assert not (tmp_path / "results").exists()


TRAINED = shell(row().training) + " --lr 0.1 --max-tokens 8000 --betas '(0.9, 0.98)'"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"training": TRAINED.replace("0.1", "0.2")}, r"\(--lr: '0\.1' there, '0\.2' here\)"),
        ({"training": TRAINED + " --pre-norm"}, r"\(--pre-norm: not given there, 'True' here"),
        ({"training": TRAINED.replace("data/bin", "more/bin")}, "the command: .*more/bin'.' h"),
        ({"training": ""}, "the command: .* there, not given here"),
        ({"training": TRAINED + " --update-freq 2"}, "update: '8000' there, '16000' here"),
        ({"positions": "diet-rel sharing=layer-wise"}, "positions: 'diet-rel sharing=none "),
        ({"positions": row().encoding + " rank=64"}, "positions: .* 'diet-rel .* rank=64' here"),
        ({"model": "encoder-layers=6"}, r"\(model: '' there, 'encoder-layers=6' here\)"),
        ({"averaged": 5}, r"\(averaged: '1' there, '5' here\)"),
        ({"parameters": 7}, "parameters: '1234567' there, '7' here"),
        ({"subwords": "spm"}, r"\(subwords: 'bpe' there, 'spm' here\)"),
        ({"references_sha256": "f" * 64}, "references_sha256: "),
        ({"source_mended": "3 lines, rules 1"}, "source_mended: '' there, '3 lines, rules 1' here"),
    ],
)
def test_another_training_does_not_take_the_place(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    first = row(training=TRAINED)
    file = put_result(tmp_path, first, "eins\n")
    other = row(**{"training": TRAINED, "checkpoint_sha256": "0" * 64, **changes})
    with pytest.raises(UserError, match=told) as caught:
        put_result(tmp_path, other, "zwei\n")
    assert "give --system another name" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert read_results(file) == [first]
    assert (tmp_path / first.hypotheses).read_text() == "eins\n"


@pytest.mark.parametrize(
    "command",
    [
        TRAINED.replace("--seed 1", "--seed 2").replace("checkpoints/", "/mnt/"),
        TRAINED + " --user-dir ../diet_mt --tensorboard-logdir x --cpu",
        TRAINED.replace("8000", "2000") + " --distributed-world-size 2 --update-freq 2",
        TRAINED.replace("--lr 0.1", "--lr 3 --lr=0.1"),
    ],
)
def test_the_same_training_elsewhere_does(tmp_path: Path, command: str) -> None:
    put_result(tmp_path, row(training=TRAINED), "eins\n")
    again = row(training=command, checkpoint_sha256="0" * 64)
    assert read_results(put_result(tmp_path, again, "zwei\n")) == [again]


def test_the_same_checkpoint_does_whatever_is_known_of_its_command(tmp_path: Path) -> None:
    put_result(tmp_path, row(training=""), "eins\n")
    assert read_results(put_result(tmp_path, row(), "zwei\n")) == [row()]


def test_the_same_checkpoint_does_whatever_an_older_row_left_out(tmp_path: Path) -> None:
    put_result(tmp_path, row(), "eins\n")
    again = row(positions=row().encoding + " rank=64", model="encoder-layers=6")
    assert read_results(put_result(tmp_path, again, "zwei\n")) == [again]


def test_rows_written_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    rows = [row(seed=seed, hypotheses=f"toy.en-de/x.{seed}.hyp.txt") for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda result: put_result(tmp_path, result, f"{result.seed}\n"), rows))
    found = read_results(tmp_path / "toy.en-de.jsonl")
    assert sorted(found, key=lambda result: result.seed) == rows


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "a//b", "", "."])
def test_no_row_names_a_file_elsewhere(path: str) -> None:
    with pytest.raises(UserError, match=r"'hypotheses' is .* within the results folder"):
        row(hypotheses=path)
    with pytest.raises(UserError, match=r"'corpus' is .* the name of a file"):
        row(corpus=path)


def test_a_row_of_a_task_reads_as_it_was_written() -> None:
    positions = {"encoding": "x", "rank": 128, "scale": 0.5, "shared": True, "clip": None}
    row = task_row(positions=positions, notes=["train: 744 of 392,702 \u2028 rows"])
    assert parse_row(TaskResult, row.to_json()) == row
    assert row.score == 30.5


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"metrics": {"matthews": "30"}}, "'metrics' is .*, expected dict"),
        ({"metrics": {"matthews": math.nan}}, "'metrics' is .* expected a finite number"),
        ({"notes": "x"}, "'notes' is 'x', expected list"),
        ({"positions": {"rank": [1]}}, "'positions' is"),
        ({"lr": "3e-5"}, "'lr' is '3e-5', expected float"),
        ({"main_metric": "f1"}, "main_metric 'f1' of CoLA is none of"),
        ({"task": "../x"}, "task '../x'"),
        ({"tusk": "x"}, "unknown field 'tusk'"),
    ],
)
def test_a_wrong_field_of_a_task_is_named(changes: dict[str, Any], complaint: str) -> None:
    fields = json.loads(task_row().to_json())
    with pytest.raises(UserError, match=complaint):
        parse_row(TaskResult, json.dumps({**fields, **changes}))


def test_the_same_run_takes_its_own_place(tmp_path: Path) -> None:
    other = task_row(seed=2)
    again = task_row(metrics={"matthews": 31.0}, date="2026-02-03", checkpoint_sha256="c" * 64)
    rest = [task_row(split="valid1"), task_row(lr=1e-5), task_row(segments="input")]
    for each in (task_row(), other, *rest, again):
        assert put_row_of(tmp_path / "tasks", each) == tmp_path / "tasks" / "CoLA.jsonl"
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
    for each in rows:
        put_row_of(tmp_path, each)
    assert read_task_results(tmp_path / "CoLA.jsonl") == rows


def test_another_training_takes_nobodys_place(tmp_path: Path) -> None:
    put_row_of(tmp_path, task_row())
    training, other = task_row().training, {"checkpoint_sha256": "c" * 64}
    with pytest.raises(UserError, match=r"\(--dropout: not given there, '0.3'"):
        put_row_of(tmp_path, task_row(**other, training={**training, "dropout": 0.3}))
    elsewhere = {**training, "save-dir": "elsewhere", "finetune-from-model": "b.pt"}
    put_row_of(tmp_path, task_row(**other, training=elsewhere))
    assert [row.training for row in read_task_results(tmp_path / "CoLA.jsonl")] == [elsewhere]
