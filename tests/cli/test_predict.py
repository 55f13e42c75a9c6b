"""``diet-mt predict``: which splits it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..calling import called


@pytest.mark.parametrize(("task", "splits"), [("MNLI", ["valid", "valid1"]), ("QNLI", ["valid"])])
def test_dev_is_every_dev_set(
    task: str, splits: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--split", "dev", "test", "--results", "rows", "--dry-run")
    (tmp_path / "checkpoint.pt").touch()
    assert called("predict", tmp_path / task, tmp_path / "checkpoint.pt", *words) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [[task, split] for split in [*splits, "test"]]
