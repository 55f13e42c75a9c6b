"""A training in its folder, with a stand-in for fairseq-train."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch

from diet_mt.evaluation.options import portable
from diet_mt.experiments import train as run
from diet_mt.experiments.fairseq_command import Options, Training, parse
from diet_mt.system.engine import alone
from diet_mt.system.errors import UserError

from ..checkpoints import state_of
from ..processes import held, is_alive, wait_until


def save_last(folder: Path, passed: int = 0, **where: int) -> bytes:
    """``save/checkpoint_last.pt``; returns what is in it. ``passed``: validations since the
    best one.
    """
    file = folder / "save" / "checkpoint_last.pt"
    state = state_of(**where, patience={"best": 1.0, "num_runs": passed})  # type: ignore[arg-type]
    torch.save(state | {"cfg": {"model": {}}}, file)
    return file.read_bytes()


class Program:
    """What runs in the place of fairseq-train: a shell script, which counts its calls."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "fairseq-train"
        self.calls = folder / "calls"
        self.does("")

    def does(self, commands: str) -> None:
        text = f'#!/bin/sh\necho "$*" >>{self.calls}\n{commands}\n'
        self.path.write_text(text, encoding="utf-8")
        self.path.chmod(0o755)

    def called(self) -> list[str]:
        return self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []


@pytest.fixture
def save(tmp_path: Path) -> Path:
    """The folder of the training, empty."""
    (tmp_path / "save").mkdir()
    return tmp_path / "save"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    stand_in = Program(tmp_path)
    monkeypatch.setattr(run, "module", lambda name, words: [str(stand_in.path), *words])
    return stand_in


def training(folder: Path, words: str = "", launch: str = "", rank: int = 0) -> Training:
    options: Options = {"arch": ["none_tiny"], "save-dir": [str(folder / "save")]}
    options |= parse(words.split())
    return Training(folder / "bin", options, launch.split(), folder / "save", rank)


def train(*arguments: object, **more: object) -> None:
    run.train(training(*arguments, **more), lambda: None)  # type: ignore[arg-type]


def test_the_stored_command_is_without_the_devices(tmp_path: Path, program: Program) -> None:
    program.does("echo learnt")
    train(tmp_path, "--lr 0.1", "--cpu --distributed-rank 0")
    save = tmp_path / "save"
    assert program.called()[0].endswith("--lr 0.1 --cpu --distributed-rank 0")
    stored = shlex.split((save / "command").read_text(encoding="utf-8"))
    assert stored == training(tmp_path, "--lr 0.1").words()
    assert portable(stored)[1].startswith("data/")
    assert (save / "train.log").read_text(encoding="utf-8") == "learnt\n"
    assert (save / "revision").exists()
    before = {path: path.stat().st_mtime_ns for path in save.iterdir()}
    train(tmp_path, "--lr 0.1", "--distributed-rank 8")
    assert len(program.called()) == 1
    assert {path: path.stat().st_mtime_ns for path in save.iterdir()} == before
    with pytest.raises(UserError, match=r"--lr: .*'0\.1'.*'0\.2'"):
        train(tmp_path, "--lr 0.2")
    with pytest.raises(UserError, match="--share-all"):
        train(tmp_path, "--lr 0.1 --share-all")


def test_an_old_folder_continues(tmp_path: Path, save: Path, program: Program) -> None:
    """Their command is the same in another order, of a checkout that has moved."""
    save_last(tmp_path, updates=20, epoch=2)
    text = rf"fairseq-train {tmp_path}/bin --user-dir /gone --lr 0.1 --save-dir x --arch none_tiny "
    (save / "command").write_text(text, encoding="utf-8")
    train(tmp_path, "--lr 0.1")
    assert len(program.called()) == 1


def test_a_damaged_command_is_an_error(tmp_path: Path, save: Path, program: Program) -> None:
    (save / "done").touch()
    for text in ("", "fairseq-train 'bin", "fairseq-train bin stray"):
        (save / "command").write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match="save/command: damaged"):
            train(tmp_path)


def test_where_nothing_was_trained_another_command_may_begin(
    tmp_path: Path, program: Program
) -> None:
    program.does("echo 'error: no such data'; exit 1")
    log = tmp_path / "save" / "train.log"
    with pytest.raises(UserError, match=rf"no such data .*{log}"):
        train(tmp_path, "--lr 0.1")
    program.does("kill -9 $$")
    with pytest.raises(UserError, match="signal 9"):
        train(tmp_path, "--lr 0.2")
    assert "--lr 0.2" in (tmp_path / "save" / "command").read_text(encoding="utf-8")
    assert not (tmp_path / "save" / "done").exists()


def test_a_training_whose_time_is_up_is_not_finished(tmp_path: Path, program: Program) -> None:
    program.does("echo 'Stopping training due to cumulative_training_time: 2.1 > 2 hour(s)'")
    with pytest.raises(UserError, match="--stop-time-hours"):
        train(tmp_path, launch="--stop-time-hours 2")
    assert not (tmp_path / "save" / "done").exists()
    program.does("echo more")
    train(tmp_path, launch="--stop-time-hours 4")
    assert (tmp_path / "save" / "done").exists()


def test_only_the_first_machine_keeps_the_books(tmp_path: Path, program: Program) -> None:
    train(tmp_path, rank=1)
    assert [path.name for path in (tmp_path / "save").iterdir()] == ["train.1.log"]


@pytest.mark.parametrize(
    ("words", "where", "ended"),
    [
        ("--max-update 20", {"updates": 20, "epoch": 2, "begun": 3}, True),
        ("--max-update 20", {"updates": 19, "epoch": 2, "begun": 3}, False),
        ("--max-epoch 3", {"updates": 21, "epoch": 4}, True),
        ("--max-epoch 3", {"updates": 21, "epoch": 3, "passed": 2}, False),
        ("--max-epoch 3", {"updates": 21, "epoch": 4, "begun": 1}, False),
        ("--max-epoch 50 --patience 4", {"updates": 70, "epoch": 11, "passed": 4}, True),
        ("--max-epoch 50 --patience 4", {"updates": 70, "epoch": 11, "passed": 3}, False),
    ],
)
def test_a_training_at_its_end_is_left_alone(
    tmp_path: Path, save: Path, program: Program, words: str, where: dict[str, int], ended: bool
) -> None:
    """As a kill between the last checkpoint and ``done`` leaves it: fairseq would train more."""
    (save / "command").write_text(shlex.join(training(tmp_path, words).words()), encoding="utf-8")
    before = save_last(tmp_path, **where)
    train(tmp_path, words)
    assert (save / "done").exists()
    assert program.called() == [] if ended else len(program.called()) == 1
    assert (save / "checkpoint_last.pt").read_bytes() == before


def test_a_folder_without_its_command_is_refused(
    tmp_path: Path, save: Path, program: Program
) -> None:
    """``command`` is lost, or plain fairseq-train was here."""
    for name in ("checkpoint1.pt", "done"):
        (save / name).touch()
        with pytest.raises(UserError, match="save/command: missing"):
            train(tmp_path)
        assert [path.name for path in save.iterdir()] == [name]
        (save / name).unlink()
    train(tmp_path)


def test_a_training_whose_last_checkpoint_is_gone_does_not_begin_again(
    tmp_path: Path, program: Program
) -> None:
    save = tmp_path / "save"
    # Killed before its first checkpoint, and while that was saved.
    for killed in ("kill -9 $$", f"touch {save}/checkpoint_best.pt; kill -9 $$"):
        program.does(killed)
        with pytest.raises(UserError, match="signal 9"):
            train(tmp_path)
    saves = f"echo best >{save}/checkpoint_best.pt; echo Saved checkpoint x; kill -9 $$"
    program.does(saves)
    with pytest.raises(UserError, match="signal 9"):
        train(tmp_path)
    missing = r"save/checkpoint_last\.pt: missing"
    with pytest.raises(UserError, match=missing):
        train(tmp_path)
    (save / "train.log").unlink()
    with pytest.raises(UserError, match=missing):
        train(tmp_path)
    assert (save / "checkpoint_best.pt").read_text(encoding="utf-8") == "best\n"
    assert len(program.called()) == 3
    save_last(tmp_path, updates=20, epoch=2)
    program.does("")
    train(tmp_path)
    assert (save / "done").exists()


@pytest.mark.parametrize("option", ["--no-last-checkpoints", "--restore-file x.pt"])
def test_a_training_that_needs_no_last_checkpoint_goes_on(
    tmp_path: Path, program: Program, option: str
) -> None:
    program.does(f"touch {tmp_path}/save/checkpoint_best.pt; echo Saved checkpoint x; kill -9 $$")
    for _ in range(2):
        with pytest.raises(UserError, match="signal 9"):
            train(tmp_path, option)


def test_one_training_for_one_folder(tmp_path: Path, save: Path, program: Program) -> None:
    with held(save), pytest.raises(UserError, match="save: in use"):
        train(tmp_path)
    assert program.called() == []


PARENT = """
import sys
from pathlib import Path
from diet_mt.system.options import run as main
from diet_mt.experiments import train as run
from diet_mt.experiments.fairseq_command import Training
run.module = lambda name, words: ["sleep", "60"]
run._write_command = lambda training: None
training = Training(Path("bin"), {"arch": ["x"]}, [], Path(sys.argv[1]))
sys.exit(main(lambda: run.train(training, lambda: None)))
"""


def test_what_trains_ends_with_the_one_that_began_it(tmp_path: Path) -> None:
    """SIGKILL of it alone; then the folder is free."""
    command = [sys.executable, "-c", PARENT, str(tmp_path / "save")]
    parent = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    children = psutil.Process(parent.pid).children
    wait_until(lambda: [each.name() for each in children()] == ["sleep"])
    (child,) = children()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not is_alive(child.pid))
    with alone(tmp_path / "save"):
        assert not (tmp_path / "save" / "done").exists()
