"""Curves of validation perplexity, from logs as fairseq writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.curves import LearningCurve, read_log, read_training
from diet_mt.evaluation.json_rows import read_rows

from .train_logs import JSON, POINTS, SIMPLE, train


@pytest.mark.parametrize("log", [JSON, SIMPLE], ids=["json", "simple"])
def test_points_are_read_in_both_formats(log: str) -> None:
    assert read_log(log) == POINTS


def test_where_a_training_was_continued_the_later_value_counts() -> None:
    again = JSON.replace("4.000", "3.000").replace("16.00", "8.00")
    assert read_log(JSON + again) == [[10, 5.0, 32.0], [20, 3.0, 8.0]]


def test_what_is_no_number_is_a_gap() -> None:
    assert read_log(JSON.replace("16.00", "inf").replace("4.000", "nan")) == [
        [10, 5.0, 32.0],
        [20, None, None],
    ]


def test_a_training_and_what_is_known_of_it(tmp_path: Path) -> None:
    folder = train(tmp_path / "diet_rel.2", "diet_rel", seed="2", segment_encoding="input")
    curve = read_training(folder)
    assert curve.points == POINTS
    assert (curve.system, curve.arch) == ("diet_rel", "roberta_diet_rel_tiny")
    assert (curve.seed, curve.segments, curve.parameters) == (2, "input", 1_858_480)
    assert curve.revision == "abc123"
    assert curve.settings["data"] == "mlm.en/bin"
    assert "/somewhere" not in curve.command
    assert curve.what == "diet_rel, input segments"
    assert (curve.lowest("perplexity"), curve.lowest("loss")) == (16, 4)
    assert curve.name == ""


def test_a_variant_is_told_apart_and_the_lowest_value_counts(tmp_path: Path) -> None:
    log = SIMPLE + SIMPLE.splitlines()[2].replace("loss 4.000", "loss 4.500").replace("20", "30")
    folder = train(tmp_path / "shaw.published.3", "shaw", log, seed="3", criterion="x")
    curve = read_training(folder)
    assert [point[:2] for point in curve.points] == [[10, 5.0], [20, 4.0], [30, 4.5]]
    assert (curve.what, curve.lowest("loss")) == ("shaw.published", 4)
    folder = train(tmp_path / "shaw_randomized.3", "shaw", log, seed="3", criterion="x")
    assert read_training(folder).what == "shaw_randomized"


def test_the_gpus_of_a_training_are_those_that_its_log_names(tmp_path: Path) -> None:
    assert read_training(train(tmp_path / "cpu.1", "shaw")).gpus == ""
    said = "2026-01-01 10:00:00 | INFO | fairseq.utils | rank {}: capabilities =  9.0  ; total "
    said += "memory = 139.801 GB ; name = NVIDIA {}                      \n"
    log = said.format("  0", "H200") + said.format("  1", "H200") + said.format(" 10", "H100")
    assert read_training(train(tmp_path / "gpu.1", "shaw", log + JSON)).gpus == (
        "NVIDIA H100, NVIDIA H200"
    )


def test_a_folder_without_a_training(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train.log: no such file"):
        read_training(tmp_path)
    folder = train(tmp_path / "begun", "learned", "nothing yet\n")
    with pytest.raises(UserError, match="no validation in it"):
        read_training(folder)


def test_a_file_of_other_records(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"system": "x"}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"other.jsonl, line 1: no field 'arch'"):
        read_rows(LearningCurve, tmp_path / "other.jsonl")


@pytest.mark.parametrize("points", [[], [[10, 5.0]]])
def test_points_that_are_none_are_refused(points: list[list[float | None]]) -> None:
    with pytest.raises(UserError, match="field 'points' is "):
        LearningCurve("x", "x", "none", 1, 0, {}, points, "", "")
