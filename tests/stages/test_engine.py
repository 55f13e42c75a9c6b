"""Stages: skipped, continued, refused. With real stages: tests/prepare."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.stages.engine import SUMS, Preparation, Stage, plan, prepare


def _write(text: str, path: Path) -> None:
    path.write_text(path.read_text() + text if path.exists() else text)


def _preparation(out: Path, *stages: Stage, counts: int = 3) -> Preparation:
    return Preparation(out, "en SIZE=3", stages, lambda: [("train", counts, 3)], result="last")


def _stage(name: str, text: str = "a\nb\n", **more: object) -> Stage:
    return Stage(name, "letters", lambda path: _write(text, path), **more)  # type: ignore[arg-type]


def test_what_is_there_is_kept_and_what_was_begun_is_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what = _preparation(
        tmp_path / "out", _stage("one"), _stage("two"), _stage("three", restarts=True)
    )
    out = what.out
    assert list(plan(what))[1:] == [
        f"  {name:14} to do        letters" for name in ("one", "two", "three")
    ]
    assert not out.exists()
    prepare(what)
    (out / "two").rename(out / "two.part")
    (out / "three").rename(out / "three.part")
    states = ("done before", "to continue", "to continue")
    assert all(state in line for state, line in zip(states, list(plan(what))[1:], strict=True))
    capsys.readouterr()
    prepare(what)
    assert (out / "two").read_text() == "a\nb\na\nb\n"
    assert (out / "three").read_text() == "a\nb\n"
    said = capsys.readouterr().err.split("\n")
    assert said[:3] == ["== one: done before", "== two ...", "== two: 4 lines, 0 s"]
    assert said[-3:] == ["   train: 3, expected 3", f"ready: {out}/last", ""]
    rows = [row.split("\t") for row in (out / "stages.tsv").read_text().split("\n")[:-1]]
    assert [(row[0], row[2]) for row in rows] == [
        ("one", "2"),
        ("two", "4"),
        ("three", "2"),
    ]


def test_own_settings_of_a_stage_may_change_until_it_is_made(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        raise UserError("too large")

    first = _stage("one")
    with pytest.raises(UserError, match="too large"):
        prepare(_preparation(tmp_path, first, Stage("two", "", fails, settings="SIZE=9")))
    prepare(_preparation(tmp_path, first, _stage("two", settings="SIZE=5")))
    with pytest.raises(
        UserError, match=r"/two was made with --size 5, not --size 6; remove it, or"
    ):
        prepare(_preparation(tmp_path, first, _stage("two", settings="SIZE=6")))


def test_what_was_made_of_a_result_with_other_settings_is_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def of(size: int) -> Preparation:
        last = Stage("last", "", lambda path: _write((tmp_path / "two").read_text(), path))
        return _preparation(
            tmp_path, _stage("one"), _stage("two", f"{size}\n", settings=f"SIZE={size}"), last
        )

    prepare(of(5))
    (tmp_path / "two").unlink()
    prepare(of(5))
    assert "last: removed" not in capsys.readouterr().err
    (tmp_path / "two").unlink()
    (tmp_path / "two.part").write_text("5\n")
    assert [line.split()[1:3] for line in list(plan(of(6)))[2:]] == [["to", "do"]] * 2
    prepare(of(6))
    assert "== last: removed, it was made with other settings\n" in capsys.readouterr().err
    assert (tmp_path / "last").read_text() == "6\n"


def test_checksums_are_gone_while_something_is_made(tmp_path: Path) -> None:
    prepare(_preparation(tmp_path, _stage("last")))
    (tmp_path / "last").unlink()

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(_preparation(tmp_path, Stage("last", "", killed)))
    assert not (tmp_path / SUMS).exists()


def test_a_folder_of_others_and_wrong_counts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with pytest.raises(UserError, match="was not made by diet-mt prepare"):
        prepare(_preparation(tmp_path, _stage("one")))
    with pytest.raises(UserError, match="does not have the expected counts; remove it"):
        prepare(_preparation(tmp_path / "new", _stage("one"), counts=2))
