"""Long commands that say nothing of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from diet_mt.stages import watch


def _run(tmp_path: Path, program: str) -> int:
    paths = ["--log", str(tmp_path / "log"), "--grows", str(tmp_path / "out")]
    return watch.main(["--name", "it", *paths, sys.executable, "-c", program])


def test_it_tells_how_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROGRESS", "0.1")
    (tmp_path / "out" / "in").mkdir(parents=True)
    (tmp_path / "out" / "in" / "file").write_bytes(b"x" * 300_000)
    assert _run(tmp_path, "import time; print('hello'); time.sleep(0.5)") == 0
    printed = capfd.readouterr()
    assert "   it: 0.3 MB so far, 0 s\n" in printed.err
    assert "hello" not in printed.err + printed.out
    assert (tmp_path / "log").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("print('one'); raise SystemExit('error: no luck')", "it failed: no luck (all of it in"),
        ("import os; os.kill(os.getpid(), 9)", "it failed: killed by signal 9 (all of it in"),
    ],
)
def test_a_failure_is_one_line(
    tmp_path: Path, program: str, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, program) == 2
    message = capfd.readouterr().err
    assert message.startswith(f"error: {what}")
    assert message.count("\n") == 1


def test_a_command_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paths = ["--log", str(tmp_path / "log"), "--grows", str(tmp_path)]
    assert watch.main(["--name", "it", *paths, "/no/such/program"]) == 2
    assert capfd.readouterr().err.startswith("error: /no/such/program: cannot be run")
