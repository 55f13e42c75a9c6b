"""Pictures of curves, and which ones cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diet_mt.evaluation.curves import LearningCurve
from diet_mt.evaluation.json_rows import read_rows
from diet_mt.report.curves import label

from ..calling import called
from ..evaluation.test_curves import JSON, POINTS, train


def test_curves_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    folders = [train(tmp_path / name, name) for name in ("learned", "shaw")]
    folders.append(train(tmp_path / "t5", "t5", JSON.replace("16.00", "inf")))
    out = tmp_path / "results" / "curves"
    # A folder or the log in it.
    assert called("bench", "curves", *folders[:2], folders[2] / "train.log", "--out", out) == 0
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
    drawn = tmp_path / "drawn"
    for _ in range(2):
        # A training that is there already counts once.
        given = (out.with_suffix(".jsonl"), more, folders[0])
        assert called("bench", "curves", *given, "--svg", "--out", drawn) == 0
        pictures.append(drawn.with_suffix(".svg").read_text(encoding="utf-8"))
    assert pictures[0] == pictures[1]
    assert "t5: diverged" in pictures[0]
    # Beside the second half, where learned and shaw end at one height.
    names = [name for name in ("learned", "shaw", "t5") if f">{name}</text>" in pictures[0]]
    assert names == ["learned", "t5"]
    assert "learned: 16.00, 16.00" in pictures[0]
    assert "stroke-dasharray" in pictures[0]
    assert len(read_rows(LearningCurve, drawn.with_suffix(".jsonl"))) == 4


@pytest.mark.parametrize(
    ("option", "value"), [("tokens_per_sample", "64"), ("mask_prob", "0.3"), ("task", "other")]
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    folders = [train(tmp_path / "a", "learned"), train(tmp_path / "b", "shaw", **{option: value})]
    assert called("bench", "curves", *folders, "--out", tmp_path / "curves") == 2
    name = option.replace("_", "-")
    assert f" {name} is " in capsys.readouterr().err
    assert not list(tmp_path.glob("curves*"))


def test_a_curve_without_numbers_ends_nowhere() -> None:
    curve = LearningCurve("x", "x", "none", 1, 0, {}, [[10, None, None]], "", "")
    assert curve.finite("loss") == []
    assert label([curve], "loss") == "x: diverged"
