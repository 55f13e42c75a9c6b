"""Every command of a group is there, once."""

from __future__ import annotations

from diet_mt.leaderboard.commands import commands
from diet_mt.leaderboard.standings import Section


def test_commands_stand_once_whatever_seed_and_system(plain: Section) -> None:
    assert commands(plain.group) == [
        "fairseq-train data/bin --arch ARCH --seed SEED --save-dir CHECKPOINTS",
        "fairseq-generate data/bin --path CHECKPOINTS/checkpoint_best.pt",
    ]
