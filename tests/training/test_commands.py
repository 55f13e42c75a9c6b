"""The fairseq commands that are run: those of the papers, and those of the rows kept."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from diet_mt.cli.main import main
from diet_mt.evaluation import options
from diet_mt.evaluation.options import shell
from diet_mt.evaluation.records import read_results

ROOT = Path(__file__).resolve().parents[2]
# Pairs of lines: a command of ours, and what the shell scripts that did this before ran for it; but
# Shaw's of table 4 are Tensor2Tensor's only since.
LINES = Path(__file__).with_name("commands.txt").read_text(encoding="utf-8").split("\n")[:-1]


def options_of(words: list[str]) -> dict[str, str]:
    """Option -> its value; "" -> program and data."""
    found = {name[2:]: " ".join(values) for name, values in options.options_of(words).items()}
    found.pop("user-dir", None)
    return found


class Printed:
    """What ``--dry-run`` prints, as options."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> dict[str, str]:
        assert main([*map(str, words), "--dry-run"]) == 0, self.capsys.readouterr().err
        return options_of(shlex.split(self.capsys.readouterr().out.strip()))


@pytest.fixture
def printed(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Printed:
    monkeypatch.chdir(place)
    capsys.readouterr()
    return Printed(capsys)


@pytest.mark.parametrize(("ours", "expected"), list(zip(LINES[::2], LINES[1::2], strict=True)))
def test_the_commands_are_those_of_the_scripts(printed: Printed, ours: str, expected: str) -> None:
    before = sorted(Path().rglob("*"))
    assert printed(*shlex.split(ours)[1:]) == options_of(shlex.split(expected))
    assert sorted(Path().rglob("*")) == before


# What rows from before trainings ran to convergence have in the place of the recipe's.
EARLY = ("--lr", "0.005", "--max-tokens", "4096", "--max-epoch", "15", "--dropout", "0.3")
EARLY += ("--warmup-updates", "1000")


def test_the_recipe_of_multi30k_is_that_of_the_rows_kept(printed: Printed) -> None:
    files = [*(ROOT / "results").glob("multi30k.en-de.jsonl")]
    files += (ROOT / "results" / "early").glob("multi30k.en-de.jsonl")
    assert files
    for row in [row for file in files for row in read_results(file)]:
        trained = options_of(shlex.split(shell(row.training)))
        given = ["--seed", row.seed, "--save-dir", trained["save-dir"]]
        for name in [name for name in trained if name.startswith("position-")]:
            given += [f"--{name}", *trained[name].split()]
        early = () if "patience" in trained else EARLY
        arguments = ("data/multi30k.en-de", row.arch, "--recipe", "multi30k")
        found = printed("train", *arguments, *given, *early)
        if early:
            assert found.pop("patience") == "4"
        assert found == trained


TRAIN = ("train", "data/multi30k.en-de", "shaw_tiny", "--recipe", "multi30k", "--save-dir", "save")
WMT18 = ("train", "data/wmt18.de-en", "none_base", "--recipe", "table4", "--save-dir", "save")
MIXED = ("train", "data/mixed.en-de", "none_base", "--recipe", "mixed.base", "--save-dir", "save")
MLM = ("pretrain", "data/mlm", "shaw", "--recipe", "mlm", "--save-dir", "save", "--gpus", "0")
COLA = ("finetune", "glue/CoLA", "pre.pt", "--recipe", "glue", "--save-dir", "save")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((*TRAIN, "--lr", "0.1", "--position-clip=5"), "--lr 0.1 --position-clip 5"),
        ((*TRAIN, "--max-update", "7"), "--max-update 7"),  # and no --max-epoch
        ((*TRAIN, "--seed", "3", "--precision", "bf16"), "--seed 3 --bf16"),
        ((*TRAIN, "-s", "de", "-t", "en"), "--source-lang de --target-lang en"),
        (
            (*TRAIN, "--gpus", "0", "--tokens-per-update", "8192"),
            "--max-tokens 1024 --update-freq 8 --distributed-world-size 1 --cpu",
        ),
        ((*TRAIN, "--stop-time-hours", "2"), "--stop-time-hours 2"),
        (
            (*WMT18, "--gpus", "1", "--precision", "fp16"),
            "--max-tokens 6250 --update-freq 4 --fp16",
        ),
        ((*MIXED, "--max-update", "700"), "--warmup-updates 70 --total-num-update 700"),
        ((*MLM, "--optimizer", "lamb"), "--lamb-betas '(0.9, 0.999)' --lamb-eps 1e-6"),
        ((*MLM, "--max-update", "2000"), "--warmup-updates 50 --total-num-update 2000"),
        (
            (*MLM, "--sequences-per-update", "96", "--max-tokens-per-device", "4096"),
            "--batch-size 32 --update-freq 3",
        ),
        ((*COLA, "--batch-size", "16"), "--total-num-update 2675 --warmup-updates 267"),
        ((*COLA, "--max-update", "100"), "--total-num-update 100 --warmup-updates 10"),
        ((*COLA, "--segments", "none"), "--segment-encoding none --encoder-layers 2"),
    ],
)
def test_what_is_given_goes_over_the_recipe(
    printed: Printed, words: tuple[str, ...], expected: str
) -> None:
    found = printed(*words)
    assert expected
    assert options_of(shlex.split(expected)).items() <= found.items()
    assert ("max-update" in found) + ("max-epoch" in found) == 1
    assert ("adam-betas" in found) is (found["optimizer"] == "adam")


def test_slurm_says_where_the_first_machine_is(
    printed: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\nprintf 'node-a\\nnode-b\\n'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name, value in {"NODEID": "1", "STEP_NUM_NODES": "2", "STEP_NODELIST": "node-[ab]"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    found = printed(*WMT18)
    assert found["distributed-init-method"] == "tcp://node-a:29500"
    assert (found["distributed-rank"], found["distributed-world-size"]) == ("1", "2")


def test_a_recipe_of_ones_own(printed: Printed, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "extends: table4\ntraining: {eval-bleu: false, eval-bleu-args: null, dropout: 0.3,\n"
        "  best-checkpoint-metric: null, maximize-best-checkpoint-metric: false}\n",
        encoding="utf-8",
    )
    words = [str(own) if word == "table4" else word for word in WMT18]
    found = printed(*words, "--gpus", "0")
    assert not [name for name in found if "bleu" in name or "metric" in name]
    assert (found["dropout"], found["attention-dropout"]) == ("0.3", "0.1")


# The others are compared with their sweeps.
PAGE = ROOT / "scripts" / "pretrain-and-finetune.sh"


def test_the_page_has_commands_that_run(printed: Printed) -> None:
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ").replace('"$@"', "--gpus 0")
    lines = [shlex.split(line)[1:] for line in text.split("\n") if line.startswith("diet-mt ")]
    (training,) = [words for words in lines if words[0] in ("train", "pretrain")]
    assert printed(*training)["arch"].removeprefix("roberta_").startswith("diet_rel_")
    names = [words[0] for words in lines]
    assert (names[0], names[-1]) == ("prepare", "leaderboard")
