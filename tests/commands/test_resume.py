"""A training that stops, or is killed, and starts again ends as one that never stopped."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from .runner import Done
from .transcript import epoch_losses, losses, valid_losses
from .workshop import SPY, Workshop

EPOCH = 7  # updates in an epoch of the toy corpus
BLEU = (
    "--eval-bleu",
    "--eval-bleu-args",
    '{"beam": 2, "max_len_a": 0, "max_len_b": 15}',
    "--best-checkpoint-metric",
    "bleu",
    "--maximize-best-checkpoint-metric",
)


def state(folder: Path, name: str = "checkpoint_last.pt") -> dict[str, Any]:
    """The checkpoint, read without diet_mt's help: the test wrote it itself."""
    loaded = torch.load(folder / name, map_location="cpu", weights_only=False)
    assert isinstance(loaded, dict)
    return loaded


def ended_state(folder: Path, name: str = "checkpoint_last.pt") -> dict[str, Any]:
    """What is the same in every run of a training, with and without a stop: all but the clock."""
    found = state(folder, name)
    extra = found.pop("extra_state", {})
    found["extra_state"] = {
        key: extra[key] for key in extra.keys() - {"metrics", "previous_training_time"}
    }
    found["optimizer_history"] = found["optimizer_history"][-1]  # one for each start
    del found["cfg"]  # names the folder
    return found


def train(workshop: Workshop, encoding: str, folder: Path, *more: Any, **options: Any) -> Done:
    """As by default, with a process that reads ahead of the updates."""
    return workshop.train(encoding, folder, "--num-workers", 1, *more, **options)


def same(first: Any, second: Any) -> bool:
    """Equal to the last bit, tensors anywhere inside."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def assert_same_ending(whole: tuple[Path, str], parts: tuple[Path, str], *, updates: int) -> None:
    """Two trainings, folder and output, agree in the last updates and in what is saved then."""
    expected, found = losses(whole[1]), losses(parts[1])
    assert sorted(found) == sorted(expected)[-updates:]
    assert found == {update: expected[update] for update in found}
    for printed in (epoch_losses, valid_losses):
        all_of_it, part = printed(whole[1]), printed(parts[1])
        assert part
        assert part == {key: all_of_it[key] for key in part}
    assert same(*(ended_state(folder) for folder, _ in (whole, parts)))


@pytest.mark.parametrize("encoding", ["diet-rel", "rotary"])
def test_resumed_after_an_epoch(workshop: Workshop, tmp_path: Path, encoding: str) -> None:
    train(workshop, encoding, tmp_path, "--max-epoch", 1).ok()
    rest = train(workshop, encoding, tmp_path, "--max-epoch", 2).ok()
    assert_same_ending(workshop.two_epochs(encoding), (tmp_path, rest.stdout), updates=EPOCH)


def test_resumed_with_positions_that_training_draws(workshop: Workshop, tmp_path: Path) -> None:
    draws = "--position-randomized", 200
    end = "--max-epoch", 2
    assert stop_and_go_on(workshop, tmp_path, ("--max-epoch", 1), end, *draws) == EPOCH


def stop_and_go_on(
    workshop: Workshop, folder: Path, stop: Any, end: Any, *options: Any, name: str = "diet-rel"
) -> int:
    """The same training with and without a stop; number of updates after it."""
    whole, parts = folder / "whole", folder / "parts"
    at_once = train(workshop, name, whole, *options, *end).ok()
    train(workshop, name, parts, *options, *stop).ok()
    saved = state(parts)["optimizer_history"][-1]["num_updates"]
    rest = train(workshop, name, parts, *options, *end).ok()
    after = max(losses(at_once.stdout)) - int(saved)
    assert_same_ending((whole, at_once.stdout), (parts, rest.stdout), updates=after)
    return after


# The last two draw positions at random.
@pytest.mark.parametrize("encoding", ["diet-rel", "shape", "cape"])
def test_resumed_in_the_middle_of_an_epoch(
    workshop: Workshop, tmp_path: Path, encoding: str
) -> None:
    saving = ("--save-interval-updates", 4)
    stop, end = ("--max-update", 10), ("--max-update", 14)
    assert stop_and_go_on(workshop, tmp_path, stop, end, *saving, name=encoding) == 4


def test_resumed_after_validation_with_bleu(workshop: Workshop, tmp_path: Path) -> None:
    """--eval-bleu puts arrays of numpy into the checkpoint, which the safe loader does not know."""
    stop, end = ("--max-epoch", 1), ("--max-epoch", 2)
    assert stop_and_go_on(workshop, tmp_path, stop, end, *BLEU) == EPOCH
    assert b"numpy" in (tmp_path / "parts" / "checkpoint1.pt").read_bytes()  # or it shows nothing


@pytest.mark.parametrize(
    ("moment", "complete", "left"),
    [
        ("update:10", EPOCH, ["checkpoint1.pt"]),
        # Each epoch saves checkpointN.pt, then copies it to checkpoint_best.pt and _last.pt.
        ("save:2", EPOCH, ["checkpoint1.pt", "checkpoint2.pt.tmp"]),
        ("copy:4", EPOCH, ["checkpoint1.pt", "checkpoint2.pt", "checkpoint_last.pt.part"]),
        ("copy:2", 0, ["checkpoint1.pt", "checkpoint_best.pt", "checkpoint_last.pt.part"]),
    ],
)
def test_killed(
    workshop: Workshop, tmp_path: Path, moment: str, complete: int, left: list[str]
) -> None:
    """SIGKILL leaves no time to tidy up; the run goes on from the last complete checkpoint."""
    env = {"DIET_SPY_KILL": moment}
    killed = train(workshop, "diet-rel", tmp_path, "--max-epoch", 2, *SPY, env=env)
    assert killed.status == -signal.SIGKILL, killed.tail()
    names = {path.name for path in tmp_path.iterdir()}
    assert set(left) <= names
    assert ("checkpoint_last.pt" in names) is (complete > 0)
    for name in names:
        if name.endswith(".pt"):  # complete, whichever
            assert state(tmp_path, name)["optimizer_history"][-1]["num_updates"] >= EPOCH
    rest = train(workshop, "diet-rel", tmp_path, "--max-epoch", 2).ok()
    if complete:
        assert f"(epoch 2 @ {complete} updates)" in rest.stdout
    whole = workshop.two_epochs("diet-rel")
    assert_same_ending(whole, (tmp_path, rest.stdout), updates=2 * EPOCH - complete)


PLATEAU = ("--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", 1, "--warmup-updates", 0)


@pytest.mark.parametrize("killed_at", [2 * EPOCH + 1, 2 * EPOCH + 4])
@pytest.mark.parametrize("schedule", [(), PLATEAU])
def test_schedule_and_patience_after_a_kill(
    workshop: Workshop, tmp_path: Path, schedule: Any, killed_at: int
) -> None:
    """Continued from the end of epoch 2, and from update 16: the same schedule, the same end."""
    # Without any improvement after update 4: epoch 3 lowers the rate, update 24 is the last.
    options = ("--lr", 1e-12, "--patience", 8, "--save-interval-updates", 4, *schedule)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(workshop, "diet-rel", whole, *options).ok()
    env = {"DIET_SPY_KILL": f"update:{killed_at}"}
    killed = train(workshop, "diet-rel", parts, *options, *SPY, env=env)
    assert killed.status == -signal.SIGKILL, killed.tail()
    train(workshop, "diet-rel", parts, *options).ok()
    expected, found = ended_state(whole), ended_state(parts)
    assert expected["optimizer_history"]["num_updates"] == 24
    assert expected["extra_state"]["patience"]["num_runs"] == 8
    if schedule:
        assert expected["last_optimizer_state"]["param_groups"][0]["lr"] == pytest.approx(1e-13)
        assert expected["extra_state"]["lr_patience"] == {"num_bad_epochs": 0, "last_epoch": 4}
    assert same(expected, found), (expected["optimizer_history"], found["optimizer_history"])
