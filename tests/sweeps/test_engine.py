"""``diet-mt sweep`` from beginning to end, with commands that do next to nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from diet_mt.cli.sweep import asked
from diet_mt.stages.child import start as start_child
from diet_mt.sweeps.work import end, training

from ..processes import is_alive, wait_until
from .stubs import NAMES, SWEEP, TABLE, finish, here, kill_group, start, sweep, wait_for

__all__ = ["here"]


def journal(here: Path) -> list[str]:
    return (here / "journal").read_text(encoding="utf-8").splitlines()


def test_prepare_then_runs_then_report(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert sweep("mine.yaml", "--jobs", "1") == 0
    said = capfd.readouterr()
    assert said.out == TABLE
    done = [what for name in NAMES for what in (f"train runs/{name}", f"evaluate runs/{name}")]
    steps = [each for what in ("prepare runs", *done) for each in (f"begin {what}", f"end {what}")]
    assert journal(here) == steps
    assert [line.partition("]")[2] for line in said.err.splitlines() if "] " in line] == [
        f" {name}: done ({number} of 4)" for number, name in enumerate(NAMES, start=1)
    ]
    # Again: nothing is left to do but the table.
    assert sweep("mine.yaml") == 0
    assert capfd.readouterr().out == TABLE
    assert journal(here) == steps
    log = (here / "runs" / "shaw.2" / "sweep.log").read_text(encoding="utf-8")
    assert log.endswith(
        "== sh stub.sh train runs/shaw.2 true\ntrain: done before\n"
        "== sh stub.sh evaluate runs/shaw.2\nevaluate: done before\n"
    )


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


def test_each_run_says_how_far_it_is(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = "train_inner | epoch 003: 32 / 134 loss=7.564, ppl=107.41, num_updates=300, lr=0.0015"
    words = ("--set", f"work=echo '2026 | INFO | {line}' >$2/train.log; sleep 1.5")
    assert sweep("mine.yaml", *words, "--status-every", "0.4", "--runs", "seed=1") == 0
    said = capfd.readouterr().err
    for name in ("none.1", "shaw.1"):
        assert f" s] {name}: epoch 3, 300 updates, loss 7.564\n" in said
    assert training(here / "runs" / "none.1", time.time() + 9) == "", "of an earlier command"


def test_the_others_finish_when_one_fails(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    work = "case $2 in *shaw.1) echo error: no memory; exit 1;; *none.2) kill -9 $$;; esac"
    assert sweep("mine.yaml", "--set", f"work={work}", "--jobs", "2") == 2
    said = capfd.readouterr()
    assert said.out == "", "no table"
    assert sorted(said.err.splitlines()[-2:]) == [
        "error: none.2: sh: killed by signal 9 (all of it in runs/none.2/sweep.log)",
        "error: shaw.1: sh: no memory (all of it in runs/shaw.1/sweep.log)",
    ]
    for name in NAMES:
        assert (here / "runs" / name / "evaluate.done").exists() == (name in ("none.1", "shaw.2"))
    assert sweep("mine.yaml") == 0, "the same again, mended"
    assert capfd.readouterr().out == TABLE


def test_a_command_that_cannot_begin_is_not_blamed_on_the_one_before(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def begin(words: list[str], *more: object, **options: object) -> object:
        if "evaluate" in words:
            raise OSError(28, "No space left on device")
        return start_child(words, *more, **options)

    monkeypatch.setattr("diet_mt.sweeps.work.start", begin)
    assert sweep("mine.yaml", "--runs", "seed=1,model=shaw") == 2
    said = capfd.readouterr().err
    assert "error: shaw.1: sh: runs/shaw.1/sweep.log: No space left on device (all" in said


def test_a_failed_preparation_is_the_end(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "mine.yaml").write_text(
        SWEEP.replace(
            "sh stub.sh prepare {checkpoints}", "sh -c 'echo error: no data >&2; exit 3'"
        ),
        encoding="utf-8",
    )
    assert sweep("mine.yaml") == 3
    said = capfd.readouterr()
    assert said.err.splitlines()[-1] == "error: no data"
    assert not (here / "journal").exists()


@pytest.mark.parametrize("stage", ["begin train runs/none.1", "end evaluate runs/none.2"])
def test_killed_and_again(here: Path, stage: str) -> None:
    words = ("mine.yaml", "--jobs", "2", "--set", "work=sleep 0.3")
    process = start(*words, cwd=here)
    wait_for(stage, here / "journal")
    kill_group(process)
    out, errors = finish(start(*words, cwd=here))
    assert out == TABLE, errors
    for name in NAMES:
        assert journal(here).count(f"end evaluate runs/{name}") == 1


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_nothing_goes_on_without_the_sweep(here: Path, number: signal.Signals, status: int) -> None:
    """The signal is the sweep's alone; SIGKILL leaves it no time to end what a command started."""
    work = "echo $$ >$2/pid" + ("" if number == signal.SIGKILL else "; sleep 60 & echo $! >>$2/pid")
    words = ("--set", f"work={work}; echo pids >>journal; sleep 60; true")
    process = start("mine.yaml", *words, "--runs", "model=none,seed=1", cwd=here)
    wait_for("pids", here / "journal")
    pids = [int(pid) for pid in (here / "runs/none.1/pid").read_text(encoding="utf-8").split()]
    assert all(map(is_alive, pids))
    process.send_signal(number)
    _, errors = finish(process)
    assert process.returncode == status, errors
    wait_until(lambda: not any(map(is_alive, pids)))
    if status > 0:
        assert errors.splitlines()[-1] == "error: interrupted; run again to continue"


def test_whoever_interrupts_again_leaves_nothing_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = "from signal import *; signal(15, SIG_IGN); open('ready', 'w'); pause()"
    process = subprocess.Popen([sys.executable, "-c", deaf], cwd=tmp_path)
    wait_until((tmp_path / "ready").exists)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(psutil, "wait_procs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        end([process])
    assert process.wait(60) == -signal.SIGKILL


def test_a_dry_run_prints_commands_that_can_be_pasted(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--runs", "model=none,seed=2", "--set", "work=two words", "--set",
             "checkpoints=my runs")  # fmt: skip
    before = sorted(here.iterdir())
    assert sweep("mine.yaml", "--dry-run", *words) == 0
    assert capfd.readouterr().out.splitlines() == [
        "# prepare",
        "sh stub.sh prepare 'my runs'",
        "# run none.2",
        "sh stub.sh train 'my runs/none.2' 'two words'",
        "sh stub.sh evaluate 'my runs/none.2'",
        "# report",
        "echo 'my runs/none.2'",
    ]
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("run", "words", "said"),
    [
        ("diet-mt trian x", "", "unknown command trian; did you mean train?"),
        ("diet-mt evaluate x --beem=1", "", "diet-mt evaluate x --beem=1: the following arguments"),
        ("diet-mt average --ot x.pt", "", "average --ot x.pt: unknown option --ot; did you mean"),
        ("no-such-program", "", "no-such-program: no such program"),
        ("true", "--status-every -1", "argument --status-every: -1: expected 0 or more"),
        ("true", "--set work=a --set work=b", "--set work: given twice; several values are [A,B]"),
        ("true", "--slurm partitoin=x", "--slurm: unknown option partitoin; did you mean partit"),
        ("true", "--no-wait", "--no-wait is for jobs of a cluster; add --slurm"),
    ],
)
def test_nothing_begins_with_a_mistake(
    here: Path,
    capfd: pytest.CaptureFixture[str],
    run: str,
    words: str,
    said: str,
    more: tuple[str, ...],
) -> None:
    text = (here / "mine.yaml").read_text(encoding="utf-8")
    text = text.replace('report: ["echo', f'report: ["{run}", "echo')
    (here / "mine.yaml").write_text(text, encoding="utf-8")
    assert sweep("mine.yaml", *words.split(), *more) == 2
    errors = capfd.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1
    assert not (here / "journal").exists()


def test_a_dry_run_asks_the_commands(here: Path) -> None:
    """``diet-mt sweep`` itself is one that can say what it would start."""
    assert asked(("diet-mt", "sweep", "mine.yaml", "--runs", "seed=1"))[0] == "# prepare"
    said = asked(("diet-mt", "sweep", "minne.yaml"))
    assert len(said) == 1
    assert said[0].startswith("cannot say yet: minne.yaml: no such recipe")
    assert asked(("diet-mt", "sweep", "mine.y*l", "--runs", "seed=1"))[0] == "# prepare"
    assert asked(("diet-mt", "verify", "x", "--references", "y")) == []
    assert asked(("ls",)) == []
