"""Work by several processes: in order, bounded, and honest about what was killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.stages.pool import in_order

from ..processes import is_alive, wait_until


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
    found = list(chain.from_iterable(in_order(_slow_at_first, range(95), workers, chunk=10)))
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


def _waits(numbers: list[int], folder: Path) -> list[int]:
    (folder / str(os.getpid())).touch()
    time.sleep(60)
    return numbers


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    parent = os.fork()
    if parent == 0:
        list(in_order(partial(_waits, folder=tmp_path), range(2), 2, chunk=1))
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    wait_until(lambda: not any(map(is_alive, workers)))
