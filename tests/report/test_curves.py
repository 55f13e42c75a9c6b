"""Learning curves, from logs as fairseq writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from diet_mt.evaluation.json_rows import read_rows
from diet_mt.report.curves import LearningCurve, read_log, read_training
from diet_mt.system.errors import UserError

from ..processes import called

JSON = (
    "2026-01-01 10:00:00 | INFO | train_inner | "
    '{"epoch": 1, "loss": "12.9", "ppl": "7640.2", "num_updates": "5"}\n'
    "2026-01-01 10:00:01 | INFO | valid | "
    '{"epoch": 1, "valid_loss": "5.000", "valid_ppl": "32.00", "valid_num_updates": "10"}\n'
    "2026-01-01 10:00:02 | INFO | valid | "
    '{"epoch": 2, "valid_loss": "4.000", "valid_ppl": "16.00", "valid_num_updates": "20", '
    '"valid_best_loss": "4.0"}\n'
)
SIMPLE = (
    "2026-01-01 10:00:00 | INFO | train_inner | epoch 001:      5 / 551 loss=12.9, ppl=7640.2\n"
    "2026-01-01 10:00:01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 5.000 | "
    "ppl 32.00 | wps 11334 | wpb 3360.3 | bsz 31.9 | num_updates 10\n"
    "2026-01-01 10:00:02 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 4.000 | "
    "ppl 16.00 | wps 11334 | wpb 3360.3 | bsz 31.9 | num_updates 20 | best_loss 4\n"
)
POINTS = [[10, 5.0, 32.0], [20, 4.0, 16.0]]


def train(folder: Path, system: str, log: str = JSON, **options: str) -> Path:
    """A folder as a training leaves it."""
    folder.mkdir(parents=True)
    given = {"arch": f"roberta_{system}_tiny", "seed": "1", "tokens-per-sample": "128"}
    given |= {"task": "masked_lm", "mask-prob": "0.15", "sample-break-mode": "complete_doc"}
    given |= {name.replace("_", "-"): value for name, value in options.items()}
    words = "".join(f" --{name} {value}" for name, value in given.items())
    command = f"fairseq-train /somewhere/data/mlm.en/bin --user-dir /somewhere/diet_mt{words} "
    (folder / "command").write_text(command, encoding="utf-8")
    (folder / "revision").write_text("abc123\n", encoding="utf-8")
    header = "| num. shared model params: 1,858,480 (num. trained: 1,858,480)\n"
    (folder / "train.log").write_text(header + log, encoding="utf-8")
    return folder


def test_points_are_read_in_both_formats() -> None:
    """The later one of equal updates; None where a value is no number."""
    assert read_log(JSON) == read_log(SIMPLE) == POINTS
    again = JSON.replace("4.000", "3.000").replace("16.00", "8.00")
    assert read_log(JSON + again) == [[10, 5.0, 32.0], [20, 3.0, 8.0]]
    gap = JSON.replace("16.00", "inf").replace("4.000", "nan")
    assert read_log(gap) == [[10, 5.0, 32.0], [20, None, None]]


def test_a_training_and_its_settings(tmp_path: Path) -> None:
    curve = read_training(
        train(tmp_path / "diet_rel.2", "diet_rel", seed="2", segment_encoding="input")
    )
    assert curve.points == POINTS
    assert (curve.system, curve.arch) == ("diet_rel", "roberta_diet_rel_tiny")
    assert (curve.seed, curve.segments, curve.parameters) == (2, "input", 1_858_480)
    assert (curve.revision, curve.gpus, curve.name) == ("abc123", "", "")
    assert curve.settings["data"] == "mlm.en/bin"
    assert "/somewhere" not in curve.command
    assert curve.what == "diet_rel, input segments"
    assert (curve.lowest("perplexity"), curve.lowest("loss")) == (16, 4)


def test_a_variant_has_a_name_and_the_lowest_value_counts(tmp_path: Path) -> None:
    log = SIMPLE + SIMPLE.splitlines()[2].replace("loss 4.000", "loss 4.500").replace("20", "30")
    gpu = "2026-01-01 10:00:00 | INFO | fairseq.utils | rank {}: capabilities =  9.0  ; total "
    gpu += "memory = 139.801 GB ; name = NVIDIA {}                      \n"
    gpus = "".join(
        gpu.format(*each) for each in (("  0", "H200"), ("  1", "H200"), (" 10", "H100"))
    )
    folder = train(tmp_path / "shaw.published.3", "shaw", gpus + log, seed="3", criterion="x")
    curve = read_training(folder)
    assert [point[:2] for point in curve.points] == [[10, 5.0], [20, 4.0], [30, 4.5]]
    assert (curve.what, curve.lowest("loss")) == ("shaw.published", 4)
    assert curve.gpus == "NVIDIA H100, NVIDIA H200"
    folder = train(tmp_path / "shaw_randomized.3", "shaw", log, seed="3", criterion="x")
    assert read_training(folder).what == "shaw_randomized"


def test_a_folder_without_a_training(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train.log"):
        read_training(tmp_path)
    with pytest.raises(UserError, match=r"train.log"):
        read_training(train(tmp_path / "begun", "learned", "nothing yet\n"))


def test_curves_of_trainings(tmp_path: Path) -> None:
    folders = [train(tmp_path / name, name) for name in ("learned", "shaw")]
    folders.append(train(tmp_path / "t5", "t5", JSON.replace("16.00", "inf")))
    out = tmp_path / "results" / "curves"
    # A folder or the log in it.
    assert called("bench", "curves", *folders[:2], folders[2] / "train.log", "--out", out) == 0
    rows = [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]
    assert [(row["system"], row["points"]) for row in rows] == [
        ("learned", POINTS),
        ("shaw", POINTS),
        ("t5", [[10, 5.0, 32.0], [20, 4.0, None]]),
    ]
    assert out.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    # More curves; a training that is there already counts once.
    more = train(tmp_path / "more", "learned", seed="2")
    given = (out.with_suffix(".jsonl"), more, folders[0])
    assert called("bench", "curves", *given, "--svg", "--out", tmp_path / "new") == 0
    assert len(read_rows(LearningCurve, tmp_path / "new.jsonl")) == 4
    svg = (tmp_path / "new.svg").read_text(encoding="utf-8")
    assert {"t5: diverged", "learned: 16.00, 16.00"} <= set(re.findall(">([^<>]+)</text>", svg))
    # Next to the second half, where learned and shaw end at one height.
    names = [name for name in ("learned", "shaw", "t5") if f">{name}</text>" in svg]
    assert names == ["learned", "t5"]


def test_trainings_that_cannot_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [train(tmp_path / "a", "learned"), train(tmp_path / "b", "shaw", mask_prob="0.3")]
    assert called("bench", "curves", *folders, "--out", tmp_path / "curves") == 2
    assert "mask-prob" in capsys.readouterr().err
    assert not list(tmp_path.glob("curves*"))
