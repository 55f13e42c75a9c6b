"""``diet-mt sweep`` from beginning to end, with commands that do next to nothing: on this machine,
by submitit's local executor, and by programs that stand in for Slurm's.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import submitit

from diet_mt.cli.sweep import planned
from diet_mt.experiments.jobs import ClusterJob, as_jobs, parameters
from diet_mt.experiments.recipes import read
from diet_mt.experiments.sweep import Run, sweep_of
from diet_mt.system import progress

from ..commands.runner import finish, start
from ..processes import is_alive, wait_until
from .stubs import NAMES, SWEEP, TABLE, here, sweep, wait_for

__all__ = ["here"]
Captured = pytest.CaptureFixture[str]
# --jobs: the default of which imports torch.
ONE = ("--jobs", "1", "--runs", "model=none,seed=1")


def journal(here: Path) -> list[str]:
    return (here / "journal").read_text(encoding="utf-8").splitlines()


def test_prepare_then_runs_then_report(here: Path, capfd: Captured) -> None:
    assert sweep("mine.yaml", "--jobs", "1") == 0
    printed = capfd.readouterr()
    assert printed.out == TABLE
    done = [what for name in NAMES for what in (f"train runs/{name}", f"evaluate runs/{name}")]
    steps = [each for what in ("prepare runs", *done) for each in (f"begin {what}", f"end {what}")]
    assert journal(here) == steps
    lines = [line.partition("] ")[2] for line in printed.err.splitlines() if "] " in line]
    assert [line.partition(",")[0] for line in lines] == [
        f"{name}: done ({number} of 4" for number, name in enumerate(NAMES, start=1)
    ]
    # Again: nothing is left to do but the table.
    assert sweep("mine.yaml") == 0
    assert capfd.readouterr().out == TABLE
    assert journal(here) == steps


def test_runs_side_by_side_have_one_thread_each(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either run waits for the other to begin."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    meet = 'touch $2.here; until [ "$(ls runs/*.here | wc -l)" -ge 2 ]; do sleep 0.05; done; '
    words = ("--set", f"work={meet}echo $OMP_NUM_THREADS threads", "--jobs", "2")
    assert sweep("mine.yaml", *words, "--runs", "seed=1", "--runs", "seed=2,model=none") == 0
    assert "1 threads\n" in (here / "runs" / "shaw.1" / "sweep.log").read_text(encoding="utf-8")
    assert not (here / "runs" / "shaw.2").exists(), "not chosen"


def test_the_status_of_a_run_is_printed_when_it_changes(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.3)
    words = ("--set", "work=echo '  epoch 3, 300 updates, loss 7.564'; sleep 1.2")
    assert sweep("mine.yaml", *words, *ONE) == 0
    assert capfd.readouterr().err.count("none.1: epoch 3, 300 updates, loss 7.564\n") == 1


def test_the_others_finish_when_one_fails(here: Path, capfd: Captured) -> None:
    work = "case $2 in *shaw.1) echo error: no memory; exit 1;; *none.2) kill -9 $$;; esac"
    assert sweep("mine.yaml", "--set", f"work={work}", "--jobs", "2") == 2
    printed = capfd.readouterr()
    assert printed.out == "", "no table"
    for name, why in (("none.2", "signal 9"), ("shaw.1", "no memory")):
        assert f"runs/{name}/sweep.log" in printed.err
        assert why in printed.err
    for name in NAMES:
        assert (here / "runs" / name / "evaluate.done").exists() == (name in ("none.1", "shaw.2"))
    assert sweep("mine.yaml") == 0, "the same again, repaired"
    assert capfd.readouterr().out == TABLE


def test_a_failed_preparation_is_the_end(here: Path, capfd: Captured) -> None:
    fails = "sh -c 'echo error: no data >&2; exit 3'"
    text = SWEEP.replace("sh stub.sh prepare {checkpoints}", fails)
    (here / "mine.yaml").write_text(text, encoding="utf-8")
    assert sweep("mine.yaml") == 3
    assert capfd.readouterr().err.splitlines()[-1] == "error: no data"
    assert not (here / "journal").exists()


@pytest.mark.parametrize("stage", ["begin train runs/none.1", "end evaluate runs/none.2"])
def test_killed_and_again(here: Path, stage: str, capfd: Captured) -> None:
    process = start("sweep", "mine.yaml", "--jobs", "2", "--set", "work=sleep 0.3", cwd=here)
    wait_for(stage, here / "journal")
    os.killpg(process.pid, signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    assert sweep("mine.yaml", "--jobs", "2", "--set", "work=sleep 0.3") == 0
    assert capfd.readouterr().out == TABLE
    for name in NAMES:
        assert journal(here).count(f"end evaluate runs/{name}") == 1


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_nothing_goes_on_without_the_sweep(here: Path, number: signal.Signals, status: int) -> None:
    """The signal is the sweep's alone; SIGKILL leaves it no time to end what a command started."""
    work = "echo $$ >$2/pid" + ("" if number == signal.SIGKILL else "; sleep 60 & echo $! >>$2/pid")
    words = ("--set", f"work={work}; echo pids >>journal; sleep 60; true")
    process = start("sweep", "mine.yaml", *words, *ONE, cwd=here)
    wait_for("pids", here / "journal")
    pids = [int(pid) for pid in (here / "runs/none.1/pid").read_text(encoding="utf-8").split()]
    assert all(map(is_alive, pids))
    process.send_signal(number)
    finish(process, status)
    wait_until(lambda: not any(map(is_alive, pids)))


def test_a_dry_run_prints_commands_that_can_be_pasted(here: Path, capfd: Captured) -> None:
    words = ("--runs", "model=none,seed=2", "--set", "work=two words", "--set",
             "checkpoints=my runs")  # fmt: skip
    before = sorted(here.iterdir())
    assert sweep("mine.yaml", "--dry-run", *words) == 0
    commands = [line for line in capfd.readouterr().out.splitlines() if line[0] != "#"]
    assert commands[1] == "sh stub.sh train 'my runs/none.2' 'two words'"
    assert len(commands) == 4
    assert sorted(here.iterdir()) == before
    # Commands that have a dry run of their own are included.
    assert planned(("diet-mt", "sweep", "mine.y*l", "--runs", "seed=1"))[0] == "# prepare"
    assert "minne.yaml" in planned(("diet-mt", "sweep", "minne.yaml"))[0]
    assert planned(("ls",)) == []


@pytest.mark.parametrize(
    ("run", "words", "datum"),
    [
        ("diet-mt trian x", "", "trian; did you mean train?"),
        ("diet-mt average --ot x.pt", "--dry-run", "--ot; did you mean"),
        ("true", "--slurm partitoin=x", "partitoin; did you mean partition"),
        ("true", "--slurm time=long --dry-run", "time=long"),
        ("true", "--slurm time=9 --jobs 1", "sbatch"),  # which is not here
    ],
)
def test_nothing_begins_with_a_mistake(
    here: Path, capfd: Captured, run: str, words: str, datum: str
) -> None:
    text = SWEEP.replace('report: ["echo', f'report: ["{run}", "echo')
    (here / "mine.yaml").write_text(text, encoding="utf-8")
    assert sweep("mine.yaml", *words.split()) == 2
    errors = capfd.readouterr().err
    assert datum in errors
    assert errors.count("\n") == 1
    assert not (here / "journal").exists()


def test_each_run_is_a_job(here: Path) -> None:
    """Of submitit's executor for this machine."""
    runs = sweep_of(read("mine.yaml"), "mine.yaml").runs[:2]
    work = "case $2 in *none.1) echo error: no memory; exit 1;; esac"
    first = sweep_of(read("mine.yaml"), "mine.yaml", {"work": work}).runs[:2]
    (failed,) = as_jobs(first, {}, True, "local")
    assert failed.startswith("none.1: sh: no memory")
    assert (here / "runs" / "none.2" / "evaluate.done").exists()
    assert as_jobs(runs, {}, True, "local") == []
    assert (here / "runs" / "none.1" / "evaluate.done").exists()
    assert (here / "runs" / "none.1" / "job" / "id").exists()


@pytest.mark.parametrize(
    ("commands", "failure"),
    [
        ([("diet-mt", "finetune", "data"), ("diet-mt", "predict", "data")], ""),
        ([("diet-mt", "train", "--wrong"), ("sh", "-c", "exit 3")], "x: diet-mt train: "),
    ],
)
def test_on_several_machines_the_others_only_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: list[tuple[str, ...]], failure: str
) -> None:
    monkeypatch.setattr(submitit, "JobEnvironment", lambda: SimpleNamespace(global_rank=1))
    result = ClusterJob(Run("x", tmp_path, tuple(commands)))()
    assert result.startswith(failure)
    assert (tmp_path / "sweep.1.log").exists() == bool(failure) == bool(result)


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
    """sbatch only stores its script; sacct prints what state.txt has; squeue runs queue.sh."""
    programs = {
        "sbatch": f'cp "$1" {here}/submitted.$$; echo Submitted batch job 1234',
        "sacct": f"printf 'JobID|State|NodeList\\n1234|%s|a\\n' \"$(cat {here}/state.txt)\"",
        "squeue": f". {here}/queue.sh",
        "srun": "exit 1",
    }
    (here / "bin").mkdir()
    for name, does in programs.items():
        (here / "bin" / name).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
        (here / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return here


def test_what_slurm_is_given(slurm: Path) -> None:
    words = ("mine.yaml", *ONE, "--slurm", "partition=gpu,gpus_per_node=8,time=90", "--no-wait")
    assert sweep(*words) == 0
    assert (slurm / "runs" / "prepare.done").exists(), "before the jobs, here"
    [text] = (script.read_text(encoding="utf-8") for script in slurm.glob("submitted.*"))
    for option in ("partition=gpu", "gpus-per-node=8", "time=90", "job-name=none.1"):
        assert f"#SBATCH --{option}\n" in text
    # Submitted again if it has ended without a result, or neither program knows it.
    again = ("RUNNING", "", 1), ("", "echo 1", 1), ("", "exit 1", 1), ("", "", 2), ("FAILED", "", 3)
    for state, queue, count in again:
        (slurm / "state.txt").write_text(state, encoding="utf-8")
        (slurm / "queue.sh").write_text(queue, encoding="utf-8")
        assert sweep(*words) == 0
        assert len([*slurm.glob("submitted.*")]) == count
