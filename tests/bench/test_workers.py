"""Workers: a process each, stock fairseq's without the plugin, all at rest between turns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from diet_mt.bench.systems import STOCK, environment
from diet_mt.bench.workers import Worker, workers
from diet_mt.decoding.choice import VARIABLE
from diet_mt.errors import UserError

from .process.jobs import fields

NAMES = (STOCK, "diet_rel:fairseq")


@pytest.fixture(scope="module")
def crew() -> Iterator[dict[str, Worker]]:
    # Two threads, so that there is one that could spin.
    jobs = {name: (fields(name, threads=2), environment(name)) for name in NAMES}
    with workers(jobs) as found:
        yield found


def test_the_plugin_is_where_it_belongs(crew: dict[str, Worker]) -> None:
    plugin = {name: worker.ask("prepare", "decode")["plugin"] for name, worker in crew.items()}
    assert plugin == {STOCK: False, "diet_rel:fairseq": True}


def test_a_search_is_asked_for_where_the_name_says_so(crew: dict[str, Worker]) -> None:
    chosen = {}
    for name, worker in crew.items():
        text = Path(f"/proc/{worker.process.pid}/environ").read_text(encoding="utf-8")
        chosen[name] = f"{VARIABLE}=fairseq" in text.split("\0")
    assert chosen == {STOCK: False, "diet_rel:fairseq": True}
    assert environment("diet_rel") == {VARIABLE: None}


def test_waiting_takes_no_processor_time(crew: dict[str, Worker]) -> None:
    for worker in crew.values():
        worker.ask("prepare", "train")
        assert worker.turn("train") > 0
    time.sleep(0.5)  # threads that wait for more work give up soon
    processes = [psutil.Process(worker.process.pid) for worker in crew.values()]
    before = [sum(process.cpu_times()[:2]) for process in processes]
    time.sleep(1.0)
    after = [sum(process.cpu_times()[:2]) for process in processes]
    assert sum(after) - sum(before) <= 0.05


def test_its_outputs_are_numbered(crew: dict[str, Worker]) -> None:
    crew[STOCK].ask("prepare", "decode")
    outputs = crew[STOCK].ask("outputs", "decode")["outputs"]
    assert outputs
    assert {len(tokens) for tokens in outputs.values()} == {4}


def test_one_that_dies_is_reported_with_its_last_line_and_none_is_left_behind() -> None:
    job = fields(STOCK, train_tokens=10**6)
    jobs = {STOCK: (job, {}), "idle": (fields(STOCK), {})}
    with workers(jobs) as crew:
        idle = crew["idle"].process
        assert idle.poll() is None
        with pytest.raises(UserError, match=r"stock: .* ended with 1 \(ValueError: train: only"):
            crew[STOCK].ask("prepare", "train")
    assert idle.returncode is not None
