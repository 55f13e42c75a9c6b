"""Options of commands as data, and their differences."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from diet_mt.evaluation.options import (
    comparable,
    difference,
    options_of,
    parse,
    portable,
    portable_file,
    shell,
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
            "fairseq-generate data/m/bin --path=/a/b/c/best.pt --cpu",
            "fairseq-generate data/m/bin --path=checkpoints/c/best.pt --cpu",
        ),
    ],
)
def test_commands_lose_the_folders_of_the_machine(command: str, expected: str) -> None:
    assert portable(shlex.split(command)) == shlex.split(expected)


def test_files_lose_the_folders_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert portable_file(Path("runs/valid/predictions.json")) == "runs/valid/predictions.json"
    assert portable_file(tmp_path / "here" / "runs" / "x.tsv") == "runs/x.tsv"
    assert portable_file(Path("../other/runs/x.tsv")) == "x.tsv"


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
    assert options_of(["bin", "--lr", "0.1", "--lr=0.2", "--lr", "0.3"]) == {
        "": ["bin"],
        "--lr": ["0.3"],
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1e-6", 1e-6), ("12", 12), ("-3", -3), ("007", "007"), ("nan", "nan")),
        *(("1_0", "1_0"), ("1e999", "1e999"), ("", "")),
    ],
)
def test_numbers_are_numbers(text: str, value: object) -> None:
    assert parse(["--x", text]) == {"x": value}


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        ("--clip-norm 0.0 --lr 2e-5", "--clip-norm 0 --lr 0.00002 --seed 2", ""),
        ("--max-tokens 4096", "--batch-size 4096", "tokens of an update"),
        ("--max-tokens 512 --batch-size 8", "--max-tokens 512 --batch-size 4", "--batch-size"),
    ],
)
def test_trainings_are_compared_by_their_options(one: str, other: str, named: str) -> None:
    both = (comparable(parse(f"fairseq-train data {options}".split())) for options in (one, other))
    what = difference(*both)
    assert named in what
    assert bool(named) == bool(what)
