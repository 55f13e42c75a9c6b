"""Sweeps of commands that do next to nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from diet_mt.cli.main import main

from ..commands.runner import ENVIRONMENT, ROOT
from ..processes import wait_until

# stub.sh WHAT FOLDER [SCRIPT]: does the script once, and says so in the journal. That line alone
# tells that it is done: a kill between two marks would leave one of them.
STUB = """\
if grep -qsx "end $1 $2" journal; then echo "$1: done before"; exit; fi
echo "begin $1 $2" >>journal
eval "$3"
mkdir -p "$2" && touch "$2/$1.done"
echo "end $1 $2" >>journal
"""
SWEEP = """\
about: four runs
settings: {checkpoints: runs, work: "true"}
prepare: ["sh stub.sh prepare {checkpoints}"]
runs:
  - {model: [none, shaw], seed: [1, 2]}
folder: "{checkpoints}/{model}.{seed}"
run: ["sh stub.sh train {folder} {work}", "sh stub.sh evaluate {folder}"]
report: ["echo {folder}"]
"""
NAMES = ["none.1", "none.2", "shaw.1", "shaw.2"]
TABLE = " ".join(f"runs/{name}" for name in NAMES) + "\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with mine.yaml, in which the test stands."""
    (tmp_path / "stub.sh").write_text(STUB, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(SWEEP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(*words: str) -> int:
    """The status of ``diet-mt sweep``, in this process."""
    try:
        return main(["sweep", *words])
    except SystemExit as stop:
        return int(stop.code or 0)


def start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    """``diet-mt sweep`` in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "diet_mt", "sweep", *words],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(text: str, file: Path) -> None:
    """Returns once the file has this text."""
    wait_until(lambda: file.exists() and text in file.read_text(encoding="utf-8"))


def finish(process: subprocess.Popen[str], seconds: float = 60) -> tuple[str, str]:
    """What it says on standard output and error; nothing of it goes on afterwards."""
    try:
        return process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            kill_group(process)


def kill_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
