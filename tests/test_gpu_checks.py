"""scripts/gpu-checks.sh on a CPU, with small batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .commands.runner import ROOT

# On a busy machine; the script itself ends parts that take too long.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


def checks(out: Path, words: str) -> subprocess.CompletedProcess[str]:
    small = f"--device cpu --size tiny --out {out} {words}"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["scripts/gpu-checks.sh", *small.split()]
    variables = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)


def test_a_part_that_fails_stops_no_other(tmp_path: Path) -> None:
    done = checks(tmp_path, "--only train machine --encodings nosuch")
    assert (done.returncode, done.stderr.split(";")[0]) == (1, "failed: train")
    assert "machine" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"log.txt"}


def test_the_parts(tmp_path: Path) -> None:
    done = checks(tmp_path, "--only train decode tests --encodings diet_rel --seconds 2800")
    assert (done.returncode, done.stderr) == (0, "")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"log.txt", "table.md", "train.jsonl", "decode.jsonl"}
    lines = (tmp_path / "train.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["system"] for line in lines] == [
        "stock",
        "stock --bf16",
        "diet_rel --bf16",
    ]
