"""Workers, watched programs and functions apart: in order, bounded, none outlives its parent; and
how progress is printed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import psutil
import pytest

from diet_mt.system import progress
from diet_mt.system.errors import UserError
from diet_mt.system.process import apart, end, in_order, python_module, watch

from ..processes import is_alive, wait_until


def _doubled(numbers: list[int]) -> list[int]:
    time.sleep(0.2 if numbers[0] == 0 else 0)  # the first chunk ends last
    return [2 * number for number in numbers]


def _fails(*_: object) -> list[int]:
    raise UserError("no luck")


def _killed(*_: object) -> list[int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def _waits(numbers: list[int], folder: Path) -> list[int]:
    (folder / str(os.getpid())).touch()
    time.sleep(60)
    return numbers


@pytest.mark.parametrize("workers", [1, 2])
def test_the_order_is_kept(workers: int) -> None:
    results = list(chain.from_iterable(in_order(_doubled, range(95), workers, chunk=10)))
    assert results == list(range(0, 190, 2))
    assert list(in_order(_doubled, [], workers)) == []


def test_the_input_is_not_read_far_ahead() -> None:
    read = []

    def counted() -> Iterator[int]:
        for number in range(1000):
            read.append(number)
            yield number

    results = in_order(_doubled, counted(), 2, chunk=10)
    next(results)
    assert len(read) <= 10 * (2 * 3 + 1)
    results.close()


@pytest.mark.parametrize(("work", "message"), [(_killed, "killed"), (_fails, "no luck")])
def test_errors_of_workers_and_functions_arrive(tmp_path: Path, work: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(in_order(work, range(10), 2))  # type: ignore[arg-type]
    with pytest.raises(UserError, match=message):
        apart("it", work, grows=tmp_path)  # type: ignore[arg-type]


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    parent = os.fork()
    if parent == 0:
        try:
            list(in_order(partial(_waits, folder=tmp_path), range(2), 2, chunk=1))
        finally:
            os._exit(1)  # never on as a second pytest
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    wait_until(lambda: not any(map(is_alive, workers)))


def test_a_second_interruption_leaves_nothing_at_work(
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


def test_an_interrupted_function_does_not_continue(tmp_path: Path) -> None:
    """A library at work in the other process ends, however long it would take."""
    program = """\
import sys, time
from pathlib import Path
from diet_mt.system.options import run
from diet_mt.system import process, progress
progress.EVERY_S = 0.1
progress.say = lambda text: Path("printed").touch()
sys.exit(run(lambda: process.apart("it", time.sleep, 600, grows=Path("none"))))
"""
    command = [sys.executable, "-c", program]
    for number, kill in (
        (signal.SIGTERM, os.kill),
        (signal.SIGINT, os.kill),
        (signal.SIGTERM, os.killpg),  # the other process may be gone first
    ):
        process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
        wait_until((tmp_path / "printed").exists)
        kill(process.pid, number)
        assert process.wait(60) == 128 + number
        (tmp_path / "printed").unlink()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([sys.executable, "-c", "print('a'); raise SystemExit('error: no luck')"], "no luck"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], "signal 9, out of memory"),
        (["/no/such/program"], "/no/such/program"),
        (python_module("json.tool", "--indent", "1", "-"), "Expecting value"),  # no JSON on stdin
    ],
)
def test_a_failed_program_is_one_line(tmp_path: Path, command: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        watch("it", command, tmp_path / "log", tmp_path)
    assert "\n" not in str(caught.value)


def test_progress_in_a_log_has_the_share_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([0.0, 4.0, 11.0, 12.0, 25.0, 26.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    assert list(progress.ticking("abcd", "read", "letters")) == list("abcd")
    first, second, last = capsys.readouterr().err.splitlines()
    assert "2 letters (50%, 0 min 11 s left)" in first
    assert ("4 letters" in second, "26 s" in last, "left" in second + last) == (True, True, False)


TEXT = "INFO | train_inner | epoch 003:  {step} / 100 loss=4.1, nll_loss=2.6, ups=2, num_updates="
JSON = '| train_inner | {"epoch": 2, "update": 1.5, "loss": "7.2", "ups": "4", "num_updates": "80"'


@pytest.mark.parametrize(
    ("log", "command", "expected"),
    [
        ("", "", ""),
        (
            TEXT.format(step=50) + "250,\n",
            "fairseq-train x --max-epoch 5 --lr 1",
            "epoch 3, 250 updates, loss 4.1 (50%, 2 min 5 s left)",
        ),
        (
            JSON + ",\n",
            "fairseq-train x --max-update 320",
            "epoch 2, 80 updates, loss 7.2 (25%, 1 min 0 s left)",
        ),
        ("| train_inner | epoch 001: 1 / 9 loss=nan, num_upd", "", ""),
    ],
)
def test_the_status_of_a_training(log: str, command: str, expected: str) -> None:
    assert progress.training_status(log, command) == expected
