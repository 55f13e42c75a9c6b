"""The rehearsal itself, with a few hundred pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from tools import made_up, rehearsal

ALL = ["archives", "extracted", "raw", "clean", "tok", "bpe.codes", "bpe", "bin"]


def test_which_stage_a_line_begins() -> None:
    assert rehearsal.begun("== tok ...\n") == "tok"
    for line in ("== tok: done before\n", "== tok: 3 lines, 1 s\n", "   tok ...\n", "\n"):
        assert rehearsal.begun(line) == ""


@pytest.mark.slow
def test_a_small_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(made_up, "HELD_OUT", 20)
    given = ["--pairs", "500", "--workers", "2", "--", str(tmp_path), "--bpe-merges", "300"]
    assert rehearsal.main(given) == 0
    printed = capsys.readouterr().out.split("\n")
    rows = [json.loads(line) for line in printed if line.startswith("{")]
    assert [row["name"] for row in rows] == ALL
    assert {(row["pairs"], row["workers"], row["subwords"]) for row in rows} == {(500, 2, "bpe")}
    fairseq = rows[-1]
    assert fairseq["peak_mib"] > 100
    assert 0.5 < fairseq["main_cpu_seconds"] <= fairseq["cpu_seconds"]
    table = [line for line in printed if line.startswith("| ")]
    assert len(table) == len(ALL) + 3


def test_a_recipe_that_fails_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "manifest").write_text("")
    (tmp_path / "archives" / "pairs").write_text("500\n")
    assert rehearsal.main([str(tmp_path), "--pairs", "500", "--workers", "2"]) == 2
    errors = [line for line in capsys.readouterr().err.split("\n") if line.startswith("error")]
    assert errors == ["error: the recipe failed with exit status 2; see above"]
    assert rehearsal.main([str(tmp_path), "--workers", "1"]) == 2
    assert "--workers must be at least 2" in capsys.readouterr().err


def test_archives_of_another_size_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("3000\n")
    with pytest.raises(UserError, match="has archives of 3000 pairs, not 900000; remove it"):
        rehearsal.make_archives(tmp_path, 900_000)


def test_logs_do_not_count(tmp_path: Path) -> None:
    for name in ("preprocess.log", "train.bin"):
        (tmp_path / name).write_text(name)
    assert list(rehearsal.checksums(tmp_path)) == ["train.bin"]
