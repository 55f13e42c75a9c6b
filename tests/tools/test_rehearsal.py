"""The rehearsal: text like text in archives of the true layout, and the times of the stages."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path

import pytest

from diet_mt.corpora import clean
from tools import rehearsal

STAGES = ["extracted", "raw", "clean", "tok", "bpe.codes", "bpe", "bin"]


def test_text_like_text() -> None:
    pairs = list(rehearsal.sentences(2000, seed=1))
    assert len(pairs) == 2000
    assert pairs == list(rehearsal.sentences(2000, seed=1))
    assert pairs[0] != next(rehearsal.sentences(2000, seed=2))
    assert 20 < statistics.mean(len(english.split()) for _, english in pairs) < 30
    counts = Counter(word for _, english in pairs for word in english.split())
    assert 0.4 < counts["of"] / counts["the"] < 0.65  # the second half as often as the first
    faults = {clean.fault_of(*pair, clean.Limits(("de", "en"))) for pair in pairs}
    assert faults == {""}  # in the right language, too


@pytest.mark.slow
def test_a_small_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rehearsal, "HELD_OUT", 20)
    given = ["--pairs", "500", str(tmp_path), "--bpe-merges", "300", "--workers", "1"]
    assert rehearsal.main(given) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.split("\n")]
    assert [row[0].removeprefix("| ") for row in rows if len(row) == 4][2:] == [*STAGES, "all"]
    assert {row[0]: row[2] for row in rows if len(row) == 4}["| raw"] == "500"


def test_a_recipe_that_fails_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archives = tmp_path / "archives.500"
    archives.mkdir()
    (archives / "manifest").write_text("")
    assert rehearsal.main(["--pairs", "500", str(tmp_path)]) == 2
    errors = capsys.readouterr().err.split("\n")
    assert errors == ["error: the recipe failed with exit status 2; see above", ""]
