"""The command of scripts/train-wmt18.sh for machines that are not here: printed, not run.

The arithmetic behind the batches is that of tests/cli/test_hardware.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import scripts
from .scripts import TRAIN_WMT18, run, value


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what passes for a prepared corpus, data/wmt18.de-en."""
    folder = tmp_path_factory.mktemp("printed")
    made = folder / "data" / "wmt18.de-en" / "bin"
    made.mkdir(parents=True)
    for name in ("preprocess.log", "bpe.codes"):
        (made / name).touch()
    return folder


Printed = Callable[..., list[str]]


@pytest.fixture
def printed(place: Path, tmp_path: Path) -> Printed:
    """A function that gives the words of the command on a machine that is described to it."""

    def words(*arguments: str, hardware: str = "8 bf16 3125 1 25000", **settings: str) -> list[str]:
        given = {"cwd": place, "folder": tmp_path, "hardware": hardware}
        return scripts.printed(TRAIN_WMT18, *arguments, **given, **settings)

    return words


T2T = {
    "--lr": 2 * 512**-0.5 * 8000**-0.5,
    "--warmup-updates": 8000,
    "--attention-dropout": 0.1,
    "--activation-dropout": 0.1,
    "--position-clip": 20,
}
VASWANI = {"--lr": 512**-0.5 * 4000**-0.5, "--warmup-updates": 4000}
BOTH = {
    "--dropout": 0.1,
    "--label-smoothing": 0.1,
    "--adam-eps": 1e-9,
    "--clip-norm": 0,
    "--max-update": 250000,
    "--max-tokens": 3125,
    "--update-freq": 1,
    "--distributed-world-size": 8,
}
PRE_NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]


@pytest.mark.parametrize(
    ("setting", "numbers", "betas", "flags"),
    [("t2t", T2T, "(0.9, 0.997)", PRE_NORM), ("vaswani", VASWANI, "(0.9, 0.98)", [])],
)
def test_the_settings_are_those_of_their_papers(
    printed: Printed, setting: str, numbers: dict[str, float], betas: str, flags: list[str]
) -> None:
    words = printed("de-en", "shaw", SETTING=setting)
    for option, expected in {**BOTH, **numbers}.items():
        assert float(value(words, option)) == pytest.approx(expected, rel=1e-3), option
    assert value(words, "--adam-betas") == betas
    assert value(words, "--arch") == "shaw_base"
    assert [word for word in PRE_NORM if word in words] == flags
    assert [option for option in T2T if option in words] == list(numbers)


def test_every_number_can_be_set(printed: Printed) -> None:
    settings = {"LR": "0.1", "DROPOUT": "0.3", "ADAM_BETAS": "(0.8, 0.9)", "CLIP_NORM": "1"}
    words = printed("de-en", "shaw", "--position-clip", "5", **settings, ARCH="shaw_big")
    for option, expected in (
        ("--lr", "0.1"),
        ("--dropout", "0.3"),
        ("--adam-betas", "(0.8, 0.9)"),
        ("--clip-norm", "1"),
        ("--position-clip", "5"),
        ("--arch", "shaw_big"),
    ):
        assert value(words, option) == expected


@pytest.mark.parametrize(
    ("hardware", "flags"),
    [
        ("0 fp32 6250 4 25000", ["--cpu"]),
        ("1 fp16 6250 4 25000", ["--fp16"]),
        ("1 bf16 6250 4 25000", ["--bf16"]),
        ("8 bf16 3125 1 25000", ["--bf16"]),
    ],
)
def test_precision_and_batches_are_those_of_the_hardware(
    printed: Printed, hardware: str, flags: list[str]
) -> None:
    words = printed("en-de", "none", hardware=hardware)
    gpus, _, tokens, batches, _ = hardware.split()
    assert [word for word in ("--cpu", "--fp16", "--bf16") if word in words] == flags
    assert (value(words, "--max-tokens"), value(words, "--update-freq")) == (tokens, batches)
    assert value(words, "--distributed-world-size") == str(max(int(gpus), 1))
    assert "--distributed-init-method" not in words


@pytest.mark.parametrize(
    ("settings", "address", "rank"),
    [
        ({"NODES": "2", "NODE_RANK": "1", "MASTER": "first:99"}, "tcp://first:99", "8"),
        (
            {"SLURM_STEP_NUM_NODES": "2", "SLURM_NODEID": "1", "SLURM_STEP_NODELIST": "node-[a-b]"},
            "tcp://node-a:29500",
            "8",
        ),
    ],
    ids=["TCP", "Slurm"],
)
def test_several_machines_meet_at_the_first(
    printed: Printed, settings: dict[str, str], address: str, rank: str
) -> None:
    words = printed("en-de", "none", hardware="8 bf16 1562 1 24992", **settings)
    assert value(words, "--distributed-world-size") == "16"
    assert value(words, "--distributed-init-method") == address
    assert value(words, "--distributed-rank") == rank
    assert "--distributed-no-spawn" not in words


@pytest.mark.parametrize(
    ("subwords", "expected", "absent"),
    [
        ("bpe", ["--eval-bleu-detok", "moses", '{"target_lang": "de"}'], "sentencepiece"),
        ("spm", ["--eval-bleu-remove-bpe", "sentencepiece"], "moses"),
    ],
)
def test_validation_scores_detokenized_text(
    printed: Printed, subwords: str, expected: list[str], absent: str
) -> None:
    words = printed("en-de", "none", SUBWORDS=subwords, SAVE_DIR="")
    assert set(expected) <= set(words)
    assert absent not in words
    # Checkpoints of other subwords have a folder of their own.
    own = {"bpe": "wmt18.en-de.t2t", "spm": "wmt18.en-de.spm.t2t"}[subwords]
    assert value(words, "--save-dir") == f"checkpoints/{own}/none.1"


def test_validation_may_do_without_search(printed: Printed) -> None:
    words = printed("en-de", "none", VALID_BEAM="0")
    assert [word for word in words if "bleu" in word or "metric" in word] == []
    assert '"beam": 2,' in value(printed("en-de", "none", VALID_BEAM="2"), "--eval-bleu-args")


@pytest.mark.parametrize(
    ("arguments", "settings", "complaint"),
    [
        (["en-de"], {}, "usage: "),
        (["english-German", "none"], {}, "direction 'english-German': give two languages"),
        (["en-cs", "none"], {}, "data/wmt18.cs-en/bin holds no data made by fairseq-preprocess"),
        (["en-de", "none"], {"SETTING": "bert"}, "SETTING 'bert': choose t2t or vaswani"),
        (["en-de", "none"], {"NODES": "two"}, "NODES must be a number, got 'two'"),
        (["en-de", "none"], {"SUBWORDS": "bytes"}, "SUBWORDS 'bytes': choose bpe or spm"),
        (["en-de", "none"], {"NODES": "2", "GPUS": "0"}, "set MASTER to HOST:PORT of machine 0"),
    ],
)
def test_mistakes_are_said_in_one_line(
    place: Path, tmp_path: Path, arguments: list[str], settings: dict[str, str], complaint: str
) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\necho 0 fp32 400 1 400\n", encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    settings |= {"PYTHON": str(tmp_path / "python"), "SAVE_DIR": "wrong"}
    said = run(TRAIN_WMT18, *arguments, cwd=place, status=2, **settings).strip().split("\n")
    assert said[-1].startswith("error: ")
    assert complaint in said[-1]
    assert not (place / "wrong").exists()
