"""Options of commands as data, and their differences."""

from __future__ import annotations

import shlex

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.options import (
    comparable,
    difference,
    options_of,
    parse,
    portable,
    shell,
    words_of,
)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            r"fairseq-train /home/a/data/m.en-de/bin --user-dir /x/y/diet_mt --adam-betas "
            r"\(0.9\,\ 1\) --save-dir /mnt/runs/diet.1 --seed 1",
            "fairseq-train data/m.en-de/bin --user-dir diet_mt --adam-betas '(0.9, 1)' "
            "--save-dir checkpoints/diet.1 --seed 1",
        ),
        (
            "fairseq-train /data/m/bin --save-dir /a/x.1 --tensorboard-logdir /a/x.1/tensorboard",
            "fairseq-train data/m/bin --save-dir checkpoints/x.1 "
            "--tensorboard-logdir checkpoints/x.1/tensorboard",
        ),
        (
            "fairseq-generate data/m/bin --path=/a/b/c/best.pt --cpu",
            "fairseq-generate data/m/bin --path=checkpoints/c/best.pt --cpu",
        ),
    ],
)
def test_commands_lose_the_folders_of_the_machine(command: str, expected: str) -> None:
    assert portable(command) == expected


def test_options_and_their_values() -> None:
    command = "fairseq-train bin --lr 0.1 --share-all --betas 0.9 '0.98 x' --lr=0.2 --lr 0.3"
    assert options_of(shlex.split(command)) == {
        "": ["fairseq-train", "bin"],
        "--lr": ["0.3"],
        "--share-all": [],
        "--betas": ["0.9", "0.98 x"],
    }
    with pytest.raises(UserError, match="No closing quotation"):
        words_of("x 'y")


def test_a_command_is_its_data() -> None:
    command = "fairseq-train bin -s en --lr 0.003 --share-all --betas '(0.9, 1)' --y -1 --x a b"
    options = parse(shlex.split(command))
    assert options == {
        "command": ["fairseq-train", "bin"],
        "source-lang": "en",
        "lr": 0.003,
        "share-all": True,
        "betas": "(0.9, 1)",
        "y": -1,
        "x": ["a", "b"],
    }
    assert shell(options) == command.replace(" -s ", " --source-lang ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1e-6", 1e-6), ("0.0", 0.0), ("12", 12), ("-3", -3), ("007", "007"), ("nan", "nan")),
        *(("1_0", "1_0"), ("1e999", "1e999"), ("9" * 400, "9" * 400), ("", "")),
    ],
)
def test_numbers_are_numbers(text: str, value: object) -> None:
    assert parse(["--x", text]) == {"x": value}


def test_the_first_difference_is_told() -> None:
    there = {"data": "x", "--lr": "0.1", "--share": ""}
    assert difference(there, dict(there)) == ""
    assert difference(there, {**there, "--lr": "0.2"}) == "--lr: '0.1' there, '0.2' here"
    assert difference({}, {"--share": ""}) == "--share: not given there, '' here"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("--clip-norm 0.0 --lr 2e-5", "--clip-norm 0 --lr 0.00002 --seed 2", True),
        ("--batch-size 32", "--batch-size 16 --update-freq 2 --save-dir x", True),
        ("--max-tokens 4096", "--max-tokens 1024 --update-freq 2 --distributed-world-size 2", True),
        ("--max-tokens 4096", "--batch-size 4096", False),
        ("--max-tokens 512 --batch-size 8", "--max-tokens 512 --batch-size 4", False),
        ("--lr 1e-3", "--lr 2e-3", False),
    ],
)
def test_trainings_are_alike_however_they_are_written(one: str, other: str, alike: bool) -> None:
    both = (comparable(parse(f"fairseq-train data {options}".split())) for options in (one, other))
    assert (difference(*both) == "") == alike
