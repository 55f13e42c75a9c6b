"""Runs the project's shell scripts, in folders and on machines that a test describes."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .runner import ENVIRONMENT, ROOT, SECONDS

TRAIN, EVALUATE = ROOT / "scripts" / "train.sh", ROOT / "scripts" / "evaluate.sh"
TRAIN_WMT18 = ROOT / "scripts" / "train-wmt18.sh"
PRETRAIN = ROOT / "scripts" / "pretrain.sh"


def start(
    script: Path, *arguments: object, cwd: Path, folder: Path | None = None, **settings: object
) -> subprocess.Popen[str]:
    """Begins a script in a process group of its own; programs are sought first in ``folder``."""
    places = [*([str(folder)] if folder else []), str(Path(sys.executable).parent)]
    path = os.pathsep.join([*places, os.environ["PATH"]])
    environment = {**os.environ, **ENVIRONMENT, "PATH": path, "PYTHON": sys.executable}
    environment |= {name: str(value) for name, value in settings.items()}
    return subprocess.Popen(
        [str(script), *map(str, arguments)],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    """What it says on both sides, once it has ended."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == status, (out + err)[-4000:]
    return out + err


def run(script: Path, *arguments: object, status: int = 0, **settings: Any) -> str:
    return finish(start(script, *arguments, **settings), status)


def kill_when(process: subprocess.Popen[str], there: Path) -> None:
    """SIGKILL for the script and all it started, as soon as a file is there."""
    for _ in range(100 * SECONDS):
        if there.exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def printed(
    script: Path, *arguments: str, cwd: Path, folder: Path, hardware: str, **settings: str
) -> list[str]:
    """The words of the fairseq command that a script prints on a machine described to it.

    ``folder``: for programs that stand in for Python, which would tell what this machine has, and
    for Slurm.
    """
    for name, says in (("python", hardware), ("scontrol", "node-a\nnode-b")):
        (folder / name).write_text(f"#!/bin/sh\nprintf '{says}\\n'\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    stand_ins = {"PYTHON": str(folder / "python"), "DRY_RUN": "1", "SAVE_DIR": "dry"}
    said = run(script, *arguments, cwd=cwd, folder=folder, **{**stand_ins, **settings})
    assert not (cwd / "dry").exists()
    return shlex.split(next(line for line in said.split("\n") if "fairseq-train" in line))


def value(words: list[str], option: str) -> str:
    """What the last ``option`` of a command says."""
    return words[len(words) - words[::-1].index(option)]
