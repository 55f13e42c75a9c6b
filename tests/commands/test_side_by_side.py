"""Several trainings at a time: what is said meanwhile, and what happens when one of them fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LOG_LINE = (
    "2026-01-01 01:02:03 | INFO | train_inner | epoch 003:     32 / 134 loss=7.564, "
    "nll_loss=6.747, ppl=107.41, wps=2214.6, num_updates=300, lr=0.0015"
)


def train_all(tmp_path: Path, training: str, runs: str) -> subprocess.CompletedProcess[str]:
    """Calls train_all with ``training``, a shell script, in the place of fairseq-train."""
    for folder in ("bin", "data"):
        (tmp_path / folder).mkdir()
    stub = tmp_path / "bin" / "fairseq-train"
    stub.write_text(f"#!/bin/sh\n{training}\n", encoding="utf-8")
    stub.chmod(0o755)
    (tmp_path / "data" / "preprocess.log").touch()
    script = f"set -euo pipefail; . '{ROOT}/scripts/side-by-side.sh'; train_all {runs}"
    environment = {
        **os.environ,
        "PATH": f"{stub.parent}{os.pathsep}{os.environ['PATH']}",
        "CHECKPOINTS": "my runs",
        "BIN": "data",
        "SIZE": "tiny",
        "JOBS": "2",
        "STATUS_SECONDS": "0.5",
    }
    return subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_each_training_reports_while_it_runs(tmp_path: Path) -> None:
    found = train_all(tmp_path, f"echo '{LOG_LINE}'; sleep 1.5", "diet_rel:1 none:2")
    assert found.returncode == 0, found.stderr
    assert found.stdout == ""
    for run in ("diet_rel, seed 1", "none, seed 2"):
        assert f"{run}: epoch 3, 300 updates, loss 7.564\n" in found.stderr
    for folder, arch, seed in (("diet_rel.1", "diet_rel_tiny", 1), ("none.2", "none_tiny", 2)):
        command = (tmp_path / "my runs" / folder / "command").read_text(encoding="utf-8")
        assert f"--arch {arch} " in command
        assert f"--seed {seed} " in command


def test_the_others_finish_when_one_stops(tmp_path: Path) -> None:
    training = 'case "$*" in *none_tiny*) echo "out of memory"; exit 1;; esac'
    found = train_all(tmp_path, training, "none:1 diet_rel:1 sinusoidal:1")
    assert found.returncode == 2
    last = found.stderr.rstrip("\n").split("\n")[-1]
    assert last.startswith("error: training none stopped: out of memory (all of it in my runs/")
    assert (tmp_path / "my runs" / "sinusoidal.1" / "done").exists()
    assert not (tmp_path / "my runs" / "none.1" / "done").exists()


@pytest.mark.slow
def test_the_demo_goes_all_the_way_and_continues(tmp_path: Path) -> None:
    pytest.importorskip("sacremoses")
    settings = {
        **os.environ,
        "DATA": str(tmp_path / "demo.en-de"),
        "CHECKPOINTS": str(tmp_path / "runs"),
        "RUNS": "sinusoidal:1 diet_rel:1",
        "MAX_EPOCH": "1",
        "TRAIN_PAIRS": "400",
        "VALID_PAIRS": "20",
        "TEST_PAIRS": "21",
        "BPE_MERGES": "200",
    }
    for turn in range(2):
        found = subprocess.run(
            [str(ROOT / "scripts" / "demo.sh")],
            env=settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        assert found.returncode == 0, found.stderr
        assert found.stdout.startswith("generated word order, en-de, 21 sentences, beam 10, ")
        assert "  diet_rel_tiny " in found.stdout
        assert "  BLEU nrefs:1|" in found.stdout
        assert ("is there already" in found.stderr) == bool(turn)
