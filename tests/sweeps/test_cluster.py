"""Runs as jobs: by submitit's local executor, and by programs that stand in for Slurm's."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import submitit

from diet_mt.sweeps.cluster import ClusterJob, parameters
from diet_mt.sweeps.sweep import Run

from .stubs import NAMES, TABLE, here, sweep

__all__ = ["here"]
ONE = ("--runs", "model=none,seed=1")


def test_each_run_is_a_job(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert sweep("mine.yaml", "--executor", "local") == 0
    said = capfd.readouterr()
    assert said.out == TABLE
    for name in NAMES:
        assert f"] {name}: done (" in said.err
        assert (here / "runs" / name / "evaluate.done").exists()
        assert (here / "runs" / name / "job" / "id").exists()


def test_a_job_that_fails_is_told_by_its_last_word(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    work = "case $2 in *none.1) echo error: no memory; exit 1;; esac"
    words = ("--executor", "local", "--runs", "seed=1", "--set", f"work={work}")
    assert sweep("mine.yaml", *words) == 2
    said = capfd.readouterr()
    last = "error: none.1: sh: no memory (all of it in runs/none.1/sweep.log)"
    assert (said.out, said.err.splitlines()[-1]) == ("", last)
    assert (here / "runs" / "shaw.1" / "evaluate.done").exists()


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ([("diet-mt", "finetune", "data"), ("diet-mt", "predict", "data")], ""),
        ([("diet-mt", "train", "--wrong"), ("sh", "-c", "exit 3")], "x: diet-mt train: "),
    ],
)
def test_on_several_machines_the_others_only_train(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commands: list[tuple[str, ...]],
    said: str,
) -> None:
    """Of a run that does not train they do nothing."""
    monkeypatch.setattr(submitit, "JobEnvironment", lambda: SimpleNamespace(global_rank=1))
    failure = ClusterJob(Run("x", tmp_path, tuple(commands)))()
    assert failure.startswith(said)
    assert (tmp_path / "sweep.1.log").exists() == bool(said) == bool(failure)


def test_options_of_slurm() -> None:
    given = {"partition": "gpu", "gpus_per_node": "8", "time": "60", "mem": "12.5", "qos": "low"}
    assert parameters(given) == {
        "slurm_partition": "gpu",
        "gpus_per_node": 8,
        "timeout_min": 60,
        "mem_gb": 12.5,
        "slurm_qos": "low",
    }
    assert parameters({}) == {"timeout_min": 1440}


@pytest.fixture
def slurm(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """sbatch keeps what it was given and does nothing; sacct tells what state.txt says."""
    programs = {
        "sbatch": f'cp "$1" {here}/submitted.$$; echo Submitted batch job 1234',
        "sacct": f"printf 'JobID|State|NodeList\\n1234|%s|a\\n' \"$(cat {here}/state.txt)\"",
        "srun": "exit 1",
    }
    (here / "bin").mkdir()
    for name, does in programs.items():
        (here / "bin" / name).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
        (here / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (here / "state.txt").write_text("RUNNING", encoding="utf-8")
    return here


def test_what_slurm_is_given(slurm: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("mine.yaml", *ONE, "--slurm", "partition=gpu,gpus_per_node=8,time=90", "--no-wait")
    assert sweep(*words) == 0
    assert (slurm / "runs" / "prepare.done").exists(), "before the jobs, here"
    assert "the runs are submitted" in capfd.readouterr().err
    [script] = slurm.glob("submitted.*")
    text = script.read_text(encoding="utf-8")
    for line in (
        "partition=gpu",
        "gpus-per-node=8",
        "time=90",
        "job-name=none.1",
        "open-mode=append",
    ):
        assert f"#SBATCH --{line}\n" in text
    # Again: the job is in the queue, so nothing is submitted.
    assert sweep(*words) == 0
    assert [*slurm.glob("submitted.*")] == [script]
    # It has ended, and left nothing: another one.
    (slurm / "state.txt").write_text("FAILED", encoding="utf-8")
    assert sweep(*words) == 0
    assert len([*slurm.glob("submitted.*")]) == 2


def test_without_slurm_that_is_said(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert sweep("mine.yaml", *ONE, "--slurm", "time=9") == 2
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith("error: --slurm: no sbatch on this machine")
