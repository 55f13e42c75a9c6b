"""Sweeps of commands that do next to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..processes import called, wait_until

# stub.sh WHAT FOLDER [SCRIPT]: runs the script once, and writes so to the journal. That line alone
# means that it is done: a kill between two marks would leave one of them.
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
    """The current folder, with mine.yaml."""
    (tmp_path / "stub.sh").write_text(STUB, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(SWEEP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(*words: str) -> int:
    """The status of ``diet-mt sweep``, in this process."""
    return called("sweep", *words)


def wait_for(text: str, file: Path) -> None:
    """Returns once the file has this text."""
    wait_until(lambda: file.exists() and text in file.read_text(encoding="utf-8"))
