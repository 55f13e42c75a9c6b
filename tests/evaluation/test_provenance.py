"""What a record says of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.evaluation.provenance import portable_file


def test_a_file_has_no_folders_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert portable_file(Path("runs/valid/predictions.json")) == "runs/valid/predictions.json"
    assert portable_file(tmp_path / "here" / "runs" / "x.tsv") == "runs/x.tsv"
    assert portable_file(Path("../other/runs/x.tsv")) == "x.tsv"
    assert portable_file(Path("/home/alice/x.tsv")) == "x.tsv"
