"""Long work in other processes that says nothing of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.stages import progress
from diet_mt.stages.watch import apart, python_module, watch

from ..processes import wait_until


def test_it_tells_how_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "in").mkdir(parents=True)
    (tmp_path / "out" / "in" / "file").write_bytes(b"x" * 300_000)
    say = progress.say

    def say_and_let_it_end(text: str) -> None:  # however slow this machine is
        say(text)
        (tmp_path / text.partition(":")[0]).touch()

    monkeypatch.setattr(progress, "EVERY_S", 0.1)
    monkeypatch.setattr(progress, "say", say_and_let_it_end)
    program = """\
import os, sys, time
print("hello")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "it")]
    watch("it", command, tmp_path / "log", tmp_path / "out")
    printed = capfd.readouterr()
    assert re.search(r"^   it: 0\.3 MB so far, \d+ s$", printed.err, re.MULTILINE)
    assert "hello" not in printed.err + printed.out
    assert (tmp_path / "log").read_text() == "hello\n"
    apart("that", wait_until, (tmp_path / "that").exists, grows=tmp_path / "out")
    said = capfd.readouterr().err
    assert re.search(r"^   that: 0\.3 MB so far, \d+ s$", said, re.MULTILINE)


def test_what_is_interrupted_does_not_go_on(tmp_path: Path) -> None:
    """A library at work in the other process ends, however long it would take."""
    program = """\
import sys, time
from pathlib import Path
from diet_mt.command_line import run
from diet_mt.stages import progress, watch
progress.EVERY_S = 0.1
progress.say = lambda text: Path("said").touch()
sys.exit(run(lambda: watch.apart("it", time.sleep, 600, grows=Path("none"))))
"""
    command = [sys.executable, "-c", program]
    for number, kill in (
        (signal.SIGTERM, os.kill),
        (signal.SIGINT, os.kill),
        *[(signal.SIGTERM, os.killpg)] * 5,  # the other process may be gone first
    ):
        process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
        wait_until((tmp_path / "said").exists)
        kill(process.pid, number)
        assert process.wait(60) == 128 + number
        (tmp_path / "said").unlink()


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("print('one'); raise SystemExit('error: no luck')", r"it failed: no luck \(all of it in"),
        (
            "import os; os.kill(os.getpid(), 9)",
            r"killed by signal 9, out of memory\? \(all of it in",
        ),
    ],
)
def test_a_failure_is_one_line(tmp_path: Path, program: str, what: str) -> None:
    with pytest.raises(UserError, match=what) as caught:
        watch("it", [sys.executable, "-c", program], tmp_path / "log", tmp_path)
    assert "\n" not in str(caught.value)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"/no/such/program: cannot be run"):
        watch("it", ["/no/such/program"], tmp_path / "log", tmp_path)


def _fails() -> None:
    raise UserError("no luck")


def _is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_function_apart_fails_as_it_would_here(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no luck"):
        apart("it", _fails, grows=tmp_path)
    with pytest.raises(UserError, match="it: its process was killed"):
        apart("it", _is_killed, grows=tmp_path)


def test_a_module_gets_its_words(tmp_path: Path) -> None:
    command = python_module("json.tool", "--indent", "1", "-")
    assert command[:3] == [sys.executable, "-m", "diet_mt.stages.orphans"]
    with pytest.raises(UserError, match="Expecting value"):
        watch("it", command, tmp_path / "log", tmp_path)  # standard input has no JSON
