"""A training that stops, or is killed, and starts again ends as one that never stopped."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from .runner import Done
from .test_all_commands import SPY
from .transcript import epoch_losses, losses, valid_losses
from .workshop import Workshop

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


def same(first: Any, second: Any) -> bool:
    """Equal to the last bit, tensors anywhere inside."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def assert_same_ending(whole: Done, last_part: Done, folders: tuple[Path, Path], tail: int) -> None:
    """The last ``tail`` updates and what is saved after them agree."""
    expected, found = losses(whole.stdout), losses(last_part.stdout)
    assert sorted(found) == sorted(expected)[-tail:]
    assert found == {update: expected[update] for update in found}
    for printed in (epoch_losses, valid_losses):
        all_of_it, part = printed(whole.stdout), printed(last_part.stdout)
        assert part
        assert part == {key: all_of_it[key] for key in part}
    saved = [state(folder) for folder in folders]
    assert same(saved[0]["model"], saved[1]["model"])
    assert same(saved[0]["last_optimizer_state"], saved[1]["last_optimizer_state"])


@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs", "learned"])
def test_resumed_after_an_epoch(workshop: Workshop, tmp_path: Path, encoding: str) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    at_once = workshop.train(encoding, whole, "--max-epoch", 2).ok()
    workshop.train(encoding, parts, "--max-epoch", 1).ok()
    rest = workshop.train(encoding, parts, "--max-epoch", 2).ok()
    assert_same_ending(at_once, rest, (whole, parts), tail=EPOCH)


def test_resumed_in_the_middle_of_an_epoch(workshop: Workshop, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    saving = ("--save-interval-updates", 4)
    at_once = workshop.train("diet-rel", whole, *saving, "--max-update", 14).ok()
    workshop.train("diet-rel", parts, *saving, "--max-update", 10).ok()
    rest = workshop.train("diet-rel", parts, *saving, "--max-update", 14).ok()
    assert_same_ending(at_once, rest, (whole, parts), tail=4)


def test_resumed_after_validation_with_bleu(workshop: Workshop, tmp_path: Path) -> None:
    """--eval-bleu puts arrays of numpy into the checkpoint, which the safe loader does not know."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    at_once = workshop.train("diet-rel", whole, *BLEU, "--max-epoch", 2).ok()
    workshop.train("diet-rel", parts, *BLEU, "--max-epoch", 1).ok()
    assert b"numpy" in (parts / "checkpoint_last.pt").read_bytes()  # or this shows nothing
    rest = workshop.train("diet-rel", parts, *BLEU, "--max-epoch", 2).ok()
    assert_same_ending(at_once, rest, (whole, parts), tail=EPOCH)


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
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    at_once = workshop.train("diet-rel", whole, "--max-epoch", 2).ok()
    env = {"DIET_SPY_KILL": moment}
    killed = workshop.train("diet-rel", parts, "--max-epoch", 2, *SPY, env=env)
    assert killed.status == -signal.SIGKILL, killed.tail()
    names = {path.name for path in parts.iterdir()}
    assert set(left) <= names
    for name in names:
        if name.endswith(".pt"):
            assert state(parts, name)["optimizer_history"][-1]["num_updates"] >= EPOCH
    rest = workshop.train("diet-rel", parts, "--max-epoch", 2).ok()
    assert f"@ {complete} updates)" in rest.stdout or complete == 0
    assert_same_ending(at_once, rest, (whole, parts), tail=2 * EPOCH - complete)
