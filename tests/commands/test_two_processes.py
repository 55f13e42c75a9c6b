"""Two processes on the CPU (gloo) train as one process does with the same global batches."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from .runner import Command, command
from .test_resume import state
from .transcript import losses, valid_losses
from .workshop import Workshop, architecture

# Dropout off: each process draws its own. An odd number of batches leaves the second one idle last.
COMMON = ("--cpu", "--dropout", 0, "--max-epoch", 2, "--num-workers", 1)
TWO = (
    "--ddp-backend", "legacy_ddp", "--distributed-backend", "gloo", "--distributed-no-spawn",
    "--distributed-world-size", 2,
)  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pair(workshop: Workshop, save_dir: Path, *options: Any) -> list[Command]:
    port = free_port()
    return [process(workshop, rank, port, save_dir, *options) for rank in (0, 1)]


def process(workshop: Workshop, rank: int, port: int, save_dir: Path, *options: Any) -> Command:
    where = ("--distributed-rank", rank, "--distributed-init-method", f"tcp://127.0.0.1:{port}")
    every = (*workshop.training(), *COMMON, *TWO, *options)
    return command("train", workshop.bin, *every, *where, "--save-dir", save_dir)


# Every layer has its own tables, or one set serves all layers.
@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs"])
def test_two_processes_have_the_losses_of_one(
    workshop: Workshop, tmp_path: Path, encoding: str
) -> None:
    options = ("--arch", architecture(encoding))
    one, two = tmp_path / "one", tmp_path / "two"
    single = workshop.train(encoding, one, *COMMON, *options, "--update-freq", 2).ok()
    first, second = (done.ok() for done in workshop.run.together(*pair(workshop, two, *options)))
    expected, found = losses(single.stdout), losses(first.stdout)
    assert sorted(found) == sorted(expected) == list(range(1, 9))  # or nothing was trained
    for update, loss in expected.items():
        assert float(found[update]) == pytest.approx(float(loss), abs=0.0011)  # three decimals
    ends = [valid_losses(done.stdout) for done in (single, first)]
    assert ends[0].keys() == ends[1].keys()
    for update, loss in ends[0].items():
        assert float(ends[1][update]) == pytest.approx(float(loss), abs=0.0011)
    models = [state(folder)["model"] for folder in (one, two)]
    assert models[0].keys() == models[1].keys()
    for name, value in models[0].items():
        if not name.endswith("k_proj.bias"):
            # That one's gradient is rounding alone, which Adam makes as large as any other.
            assert torch.allclose(value.float(), models[1][name].float(), atol=2e-4), name
    assert losses(second.stdout) == {}  # only the first process reports


def test_two_processes_continue_where_they_were(workshop: Workshop, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    options = ("--arch", architecture("diet-rel"))
    runs = [(whole, 2), (parts, 1), (parts, 2)]
    for folder, epochs in runs:
        commands = pair(workshop, folder, *options, "--max-epoch", epochs)
        said = [done.ok() for done in workshop.run.together(*commands)]
    assert sorted(losses(said[0].stdout)) == [5, 6, 7, 8]  # of the second epoch alone
    models = [state(folder)["model"] for folder in (whole, parts)]
    for name, value in models[0].items():
        assert torch.equal(value, models[1][name]), name
