"""What a training says of its devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.recipes import Recipe
from diet_mt.training.build import TrainingRequest, placed
from diet_mt.training.devices import Machines


@pytest.mark.parametrize(
    ("gpus", "nodes", "said"),
    [
        ("0", 1, "1 process on the CPU, fp32, batches of 400 tokens, 2 for an update: 800 tokens"),
        ("0", 2, "2 processes on the CPU, fp32, batches of 400 tokens, 1 on each of them for an"),
        ("1", 1, "1 x 1 GPUs, fp32, batches of 400 tokens, 2 for an update: 800 tokens"),
        ("4", 1, "1 x 4 GPUs, fp32, batches of 200 tokens, 1 on each of them for an update: 800"),
    ],
)
def test_the_note_says_where_and_in_what_batches(gpus: str, nodes: int, said: str) -> None:
    machines = Machines(gpus=gpus, precision="fp32", nodes=nodes, master="here:1")
    request = TrainingRequest(Recipe({}), Path("save"), machines=machines)
    options = {"tokens-per-update": ["800"]}
    made = placed(Path("data"), options, request, ("tokens", "max-tokens", 400))
    assert made.note.startswith(said)
