"""Curves of validation perplexity, from logs as fairseq writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diet_mt.bench.curves import Curve, label, read_log, read_training
from diet_mt.errors import UserError
from diet_mt.evaluation.json_rows import read_rows

from ..calling import called

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
    for measure, lowest in (("perplexity", "16.00"), ("loss", "4.000")):
        assert label([curve], measure) == f"diet_rel, input segments: {lowest}"
    assert curve.name == ""


def test_a_variant_is_told_apart_and_the_lowest_value_counts(tmp_path: Path) -> None:
    log = SIMPLE + SIMPLE.splitlines()[2].replace("loss 4.000", "loss 4.500").replace("20", "30")
    folder = train(tmp_path / "shaw.published.3", "shaw", log, seed="3", criterion="x")
    curve = read_training(folder)
    assert [point[:2] for point in curve.points] == [[10, 5.0], [20, 4.0], [30, 4.5]]
    assert label([curve, curve], "loss") == "shaw.published: 4.000, 4.000"


def test_curves_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    folders = [train(tmp_path / name, name) for name in ("learned", "shaw")]
    folders.append(train(tmp_path / "t5", "t5", JSON.replace("16.00", "inf")))
    out = tmp_path / "results" / "curves"
    # A folder or the log in it.
    assert (
        called(
            "bench",
            "curves",
            *map(str, folders[:2]),
            str(folders[2] / "train.log"),
            "--out",
            str(out),
        )
        == 0
    )
    rows = [json.loads(line) for line in out.with_suffix(".jsonl").read_text().split("\n")[:-1]]
    assert [(row["system"], row["points"]) for row in rows] == [
        ("learned", POINTS),
        ("shaw", POINTS),
        ("t5", [[10, 5.0, 32.0], [20, 4.0, None]]),
    ]
    assert out.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    assert capsys.readouterr().err == ""
    # More curves beside those that are there; the picture as SVG, the same each time.
    more = train(tmp_path / "more", "learned", seed="2")
    pictures = []
    for name in ("one", "two"):
        given = [str(out.with_suffix(".jsonl")), str(more), "--svg", "--out", str(tmp_path / name)]
        assert called("bench", "curves", *given) == 0
        pictures.append((tmp_path / f"{name}.svg").read_text(encoding="utf-8"))
    assert pictures[0] == pictures[1]
    assert "t5: diverged" in pictures[0]
    assert "learned: 16.00, 16.00" in pictures[0]
    assert "seeds in order: solid, dashed" in pictures[0]
    assert "stroke-dasharray" in pictures[0]
    assert "seeds 1, 2: the masks differ" in capsys.readouterr().err
    assert len(read_rows(Curve, tmp_path / "one.jsonl")) == 4


@pytest.mark.parametrize(
    ("option", "value"), [("tokens_per_sample", "64"), ("mask_prob", "0.3"), ("task", "other")]
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    folders = [train(tmp_path / "a", "learned"), train(tmp_path / "b", "shaw", **{option: value})]
    assert called("bench", "curves", *map(str, folders), "--out", str(tmp_path / "curves")) == 2
    name = option.replace("_", "-")
    assert f"error: {name} is " in capsys.readouterr().err
    assert not list(tmp_path.glob("curves*"))


def test_a_folder_without_a_training(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train.log: cannot be read .*give a folder"):
        read_training(tmp_path)
    folder = train(tmp_path / "begun", "learned", "nothing yet\n")
    with pytest.raises(UserError, match="no validation in it"):
        read_training(folder)


def test_a_file_of_other_records(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"system": "x"}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"other.jsonl, line 1: no field 'arch'"):
        read_rows(Curve, tmp_path / "other.jsonl")


def test_a_curve_without_numbers_ends_nowhere() -> None:
    curve = Curve("x", "x", "none", 1, 0, {}, [[10, None, None]], "", "")
    assert curve.finite("loss") == []
    assert label([curve], "loss") == "x: diverged"
