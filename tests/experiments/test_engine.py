"""Stages: skipped, continued, refused; and one process at a time in a folder. With real stages:
tests/prepare.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from diet_mt.system.engine import SUMS, Preparation, Stage, alone, missing_stages, plan, prepare
from diet_mt.system.errors import UserError

from ..processes import held


def _write(text: str, path: Path) -> None:
    path.write_text(path.read_text() + text if path.exists() else text)


def _preparation(out: Path, *stages: Stage, counts: int = 3) -> Preparation:
    return Preparation(out, "en SIZE=3", stages, lambda: [("train", counts, 3)], result="last")


def _stage(name: str, text: str = "a\nb\n", **more: object) -> Stage:
    return Stage(name, "letters", lambda path: _write(text, path), **more)  # type: ignore[arg-type]


def test_results_are_reused_and_unfinished_ones_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what = _preparation(
        tmp_path / "out", _stage("one"), _stage("two"), _stage("three", restarts=True)
    )
    out = what.out
    assert sum("to do" in line for line in plan(what)) == 3
    assert not out.exists()
    prepare(what)
    (out / "two").rename(out / "two.part")
    (out / "three").rename(out / "three.part")
    assert missing_stages(out) == ["two", "three"]
    states = ("done before", "to continue", "to continue")
    assert all(state in line for state, line in zip(states, list(plan(what))[1:], strict=True))
    capsys.readouterr()
    prepare(what)
    assert (out / "two").read_text() == "a\nb\na\nb\n"
    assert (out / "three").read_text() == "a\nb\n"
    assert capsys.readouterr().err.startswith("== one: done before")
    rows = [row.split("\t") for row in (out / "stages.tsv").read_text().split("\n")[:-1]]
    assert [(row[0], row[2]) for row in rows] == [("one", "2"), ("two", "4"), ("three", "2")]


def test_own_settings_of_a_stage_may_change_until_it_is_made(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        raise UserError("too large")

    first = _stage("one")
    with pytest.raises(UserError, match="too large"):
        prepare(_preparation(tmp_path, first, Stage("two", "", fails, settings="SIZE=9")))
    prepare(_preparation(tmp_path, first, _stage("two", settings="SIZE=5")))
    with pytest.raises(UserError, match=r"/two .* --size 5.* --size 6"):
        prepare(_preparation(tmp_path, first, _stage("two", settings="SIZE=6")))


def test_a_stage_with_other_settings_is_refused_or_begins_anew(tmp_path: Path) -> None:
    def of(size: int) -> Preparation:
        own = {"settings": f"SIZE={size}"}
        return _preparation(
            tmp_path, _stage("one"), _stage("two", f"{size}\n", **own), _stage("last", **own)
        )

    prepare(of(5))
    (tmp_path / "two").rename(tmp_path / "two.part")
    with pytest.raises(UserError, match=r"/last .* --size 5.* --size 6"):
        prepare(of(6))
    (tmp_path / "last").unlink()
    prepare(of(6))
    assert (tmp_path / "two").read_text() == "6\n"


def test_checksums_are_gone_while_something_is_made(tmp_path: Path) -> None:
    prepare(_preparation(tmp_path, _stage("last")))
    assert (tmp_path / SUMS).exists()
    (tmp_path / "last").unlink()

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(_preparation(tmp_path, Stage("last", "", killed)))
    assert not (tmp_path / SUMS).exists()


def test_an_unknown_folder_and_wrong_counts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with pytest.raises(UserError, match=str(tmp_path)):
        prepare(_preparation(tmp_path, _stage("one")))
    with pytest.raises(UserError, match=f"{tmp_path}/new"):
        prepare(_preparation(tmp_path / "new", _stage("one"), counts=2))


def _held(folder: Path) -> int:
    """A process that holds the folder until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with alone(folder):
                os.write(writing, b"x")
                time.sleep(60)
        finally:
            os._exit(1)  # never on as a second pytest
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)
    return child


def test_others_wait_or_are_refused_and_a_dead_process_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = _held(tmp_path)
    with pytest.raises(UserError, match=f"{tmp_path}: "), alone(tmp_path):
        pass
    monkeypatch.setattr("diet_mt.system.engine.say", lambda _: os.kill(child, signal.SIGKILL))
    with alone(tmp_path, 240):
        pass
    os.waitpid(child, 0)


def test_a_lock_is_reentrant_and_free_afterwards(tmp_path: Path) -> None:
    (tmp_path / "within").mkdir()
    with alone(tmp_path, float("inf")), alone(tmp_path / "within"):
        with alone(tmp_path / "within" / ".."):
            pass
        with pytest.raises(UserError, match=str(tmp_path)), held(tmp_path):
            pass
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), alone(tmp_path):
            raise ZeroDivisionError
    with held(tmp_path):
        pass
    with pytest.raises(UserError, match="/none: "), alone(tmp_path / "none"):
        pass
