"""Every command of a group is there, once."""

from __future__ import annotations

from diet_mt.leaderboard.boards import commands, general
from diet_mt.leaderboard.standings import Section


def test_commands_stand_once_whatever_seed_and_system(plain: Section) -> None:
    assert commands(plain.group) == [
        "fairseq-train data/bin --arch ARCH --seed SEED --save-dir CHECKPOINTS",
        "fairseq-generate data/bin --path CHECKPOINTS/checkpoint_best.pt",
    ]


def test_what_is_kept_beside_the_checkpoints_is_the_same_whatever_the_run() -> None:
    def command(run: str) -> str:
        return f"fairseq-train bin --save-dir ck/{run} --tensorboard-logdir ck/{run}/tb --keep ck/x"

    assert general(command("shaw.1")) == general(command("shaw.2"))
    assert general(command("shaw.1")).endswith("--tensorboard-logdir CHECKPOINTS/tb --keep ck/x")
