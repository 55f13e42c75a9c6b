"""One process at a time in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from filelock import FileLock

from diet_mt.errors import UserError
from diet_mt.stages.lock import OWN_FILES, alone


def _held(folder: Path) -> int:
    """A process that holds the folder until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with alone(folder):
            os.write(writing, b"x")
            time.sleep(60)
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)
    return child


def test_who_holds_it_is_said_and_a_dead_process_holds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = _held(tmp_path)
    message = rf"{tmp_path}: process {child} on \S+ \(.*\), since 2"
    with pytest.raises(UserError, match=message), alone(tmp_path):
        pass
    assert capsys.readouterr().err == ""

    def kill(text: str) -> None:
        assert f"waiting for process {child} on " in text
        os.kill(child, signal.SIGKILL)

    monkeypatch.setattr("diet_mt.stages.lock.say", kill)
    with alone(tmp_path, 240):
        assert f"process {os.getpid()} " in (tmp_path / OWN_FILES[1]).read_text()
    os.waitpid(child, 0)
    with alone(tmp_path, float("inf")), alone(_made(tmp_path / "within")):
        pass
    with alone(tmp_path), alone(tmp_path / "within" / ".."):
        with alone(tmp_path):
            pass
        assert (tmp_path / OWN_FILES[1]).exists(), "it is held until the first has left"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [OWN_FILES[0]]


@pytest.mark.parametrize("killed", [False, True])
def test_a_name_that_is_yet_to_be_written_is_waited_for(
    tmp_path: Path, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is refused right after the lock was taken is told by whom, too; not by a process that
    was killed before.
    """
    lock, holder = (tmp_path / name for name in OWN_FILES)
    if killed:
        child = _held(tmp_path)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert holder.read_text(encoding="utf-8").startswith(f"process {child} on ")
    with FileLock(lock), monkeypatch.context() as patch:
        name = "process 1 on x (y), since z,"
        patch.setattr(time, "sleep", lambda _: holder.write_text(name, encoding="utf-8"))
        with pytest.raises(UserError, match="process 1 on x"), alone(tmp_path):
            pass


def test_a_lock_whose_holder_has_no_name(tmp_path: Path) -> None:
    lock, holder = (tmp_path / name for name in OWN_FILES)
    dead = f"process {_dead()} on {os.uname().nodename} (x), since y,"
    with FileLock(lock):
        for left in (b"", dead.encode(), b"\xff"):
            holder.write_bytes(left)
            with pytest.raises(UserError, match="another process is at work"), alone(tmp_path):
                pass


def test_a_lock_that_is_being_given_back_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = FileLock(tmp_path / OWN_FILES[0])
    lock.acquire()
    monkeypatch.setattr(time, "sleep", lambda _: lock.release())
    with alone(tmp_path):
        assert not lock.is_locked


def _dead() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    message = r"none: cannot be written \(No such file or directory\)"
    with pytest.raises(UserError, match=message), alone(tmp_path / "none"):
        pass


def test_it_is_free_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), alone(tmp_path):
            raise ZeroDivisionError
