"""Work by several processes: in order, bounded, and honest about what was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.stages.pool import flat, in_order

ROOT = Path(__file__).resolve().parent.parent.parent


def _slow_at_first(numbers: list[int]) -> list[int]:
    time.sleep(0.2 if numbers[0] == 0 else 0)
    return [2 * number for number in numbers]


def _killed(numbers: list[int]) -> list[int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return numbers


def _fails(numbers: list[int]) -> list[int]:
    raise UserError(f"{numbers[0]} is not liked")


@pytest.mark.parametrize("workers", [1, 2])
def test_the_order_is_kept(workers: int) -> None:
    found = list(flat(in_order(_slow_at_first, range(95), workers, chunk=10)))
    assert found == list(range(0, 190, 2))


def test_nothing_comes_of_nothing() -> None:
    assert list(in_order(_slow_at_first, [], 2)) == []


def test_the_input_is_not_read_far_ahead() -> None:
    read = []

    def counted() -> Iterator[int]:
        for number in range(1000):
            read.append(number)
            yield number

    results = in_order(_slow_at_first, counted(), 2, chunk=10)
    next(results)
    assert len(read) <= 10 * (2 * 3 + 1)
    results.close()


def test_a_killed_worker_is_an_error() -> None:
    with pytest.raises(UserError, match="a worker process was killed"):
        list(in_order(_killed, range(10), 2))


def test_errors_of_a_worker_arrive() -> None:
    with pytest.raises(UserError, match="0 is not liked"):
        list(in_order(_fails, range(10), 2))


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys, time\n"
        f"sys.path.insert(0, {str(ROOT / 'data-prep')!r})\n"
        "import run  # the package without torch\n"
        "from diet_mt.stages.pool import in_order\n"
        "def wait(items):\n"
        f"    pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch()\n"
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    list(in_order(wait, range(2), 2, chunk=1))\n"
    )
    (tmp_path / "program.py").write_text(program)
    parent = subprocess.Popen([sys.executable, str(tmp_path / "program.py")])
    workers: list[int] = []
    deadline = time.monotonic() + 60
    while len(workers) < 2 and time.monotonic() < deadline:
        workers = [int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()]
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    while any(_runs(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) == 2
    assert not any(_runs(worker) for worker in workers)


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
