"""The command of scripts/pretrain.sh for machines that are not here: printed, not run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import scripts
from .scripts import PRETRAIN, run, value

# Chen et al. 2021, Table 7, for both settings; 0.025 of the updates are the warm-up.
TABLE7 = {
    "english": {
        "--max-update": 500_000,
        "--total-num-update": 500_000,
        "--warmup-updates": 12_500,
        "--tokens-per-sample": 128,
    },
    "multilingual": {
        "--max-update": 125_000,
        "--total-num-update": 125_000,
        "--warmup-updates": 3_125,
        "--tokens-per-sample": 512,
    },
}
SEQUENCES = 4096
BOTH = {"--lr": 0.0018, "--save-interval-updates": 20_000, "--max-source-positions": 512}
# Devlin et al. 2018.
BERT = {
    "--adam-eps": 1e-6,
    "--weight-decay": 0.01,
    "--clip-norm": 1,
    "--dropout": 0.1,
    "--attention-dropout": 0.1,
    "--mask-prob": 0.15,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what passes for a prepared corpus of short sentences, data/mlm."""
    folder = tmp_path_factory.mktemp("printed")
    made = folder / "data" / "mlm" / "bin"
    made.mkdir(parents=True)
    (made / "preprocess.log").touch()
    (made / "max-length").write_text("128\n", encoding="utf-8")
    return folder


Printed = Callable[..., list[str]]


@pytest.fixture
def printed(place: Path, tmp_path: Path) -> Printed:
    def words(*arguments: str, hardware: str = "8 bf16 256 2 4096", **settings: str) -> list[str]:
        given = {"cwd": place, "folder": tmp_path, "hardware": hardware}
        return scripts.printed(PRETRAIN, *arguments, **given, **settings)

    return words


@pytest.mark.parametrize("setting", TABLE7)
def test_the_numbers_are_those_of_the_paper(printed: Printed, setting: str) -> None:
    words = printed("diet-abs", SETTING=setting)
    for option, expected in {**BOTH, **TABLE7[setting], **BERT}.items():
        assert float(value(words, option)) == pytest.approx(expected), option
    assert value(words, "--adam-betas") == "(0.9, 0.999)"
    assert value(words, "--lr-scheduler") == "polynomial_decay"
    assert value(words, "--arch") == "roberta_diet_abs_base"
    assert value(words, "--sample-break-mode") == "complete_doc"
    assert value(words, "--segment-encoding") == "none"
    assert (value(words, "--task"), value(words, "--criterion")) == ("masked_lm", "masked_lm")
    each = [int(value(words, name)) for name in ("--batch-size", "--update-freq")]
    assert each[0] * each[1] * int(value(words, "--distributed-world-size")) == SEQUENCES
    assert "--bf16" in words


def test_an_update_is_shared_by_what_is_there(place: Path, tmp_path: Path) -> None:
    """By the real diet_mt.evaluation.hardware: 96 sequences by batches of 32, on the processor."""
    settings = {"GLOBAL_BATCH": "96", "BATCH": "32", "GPUS": "0", "DRY_RUN": "1"}
    said = run(PRETRAIN, "none", cwd=place, **settings)
    assert "1 x 0 GPUs, fp32, batches of 32 sequences, 3 on each of them for an update: 96" in said
    for words in ("--batch-size 32 ", "--update-freq 3 ", " --cpu"):
        assert words in said


def test_every_number_can_be_set(printed: Printed) -> None:
    settings = {"MAX_UPDATE": "2000", "LR": "0.1", "LENGTH": "256", "SIZE": "tiny", "SEED": "7"}
    settings |= {"SEGMENTS": "input", "BREAK": "complete", "SAVE_EVERY": "50", "MASK_PROB": "0.3"}
    words = printed("shaw", "--position-clip", "5", **settings)
    for option, expected in (
        ("--max-update", "2000"),
        ("--warmup-updates", "50"),
        ("--lr", "0.1"),
        ("--tokens-per-sample", "256"),
        ("--arch", "roberta_shaw_tiny"),
        ("--seed", "7"),
        ("--segment-encoding", "input"),
        ("--sample-break-mode", "complete"),
        ("--validate-interval-updates", "50"),
        ("--mask-prob", "0.3"),
        ("--position-clip", "5"),
    ):
        assert value(words, option) == expected


def test_lamb_has_options_of_its_own(printed: Printed) -> None:
    words = printed("learned", OPTIMIZER="lamb")
    assert value(words, "--optimizer") == "lamb"
    assert value(words, "--lamb-betas") == "(0.9, 0.999)"
    assert not [word for word in words if word.startswith("--adam")]


@pytest.mark.parametrize(
    ("arguments", "settings", "complaint"),
    [
        ([], {}, "usage: "),
        (["diet rel"], {}, "system 'diet rel': give the name of an encoding"),
        (["none"], {"SETTING": "german"}, "SETTING 'german': choose english or multilingual"),
        (["none"], {"DATA": "nowhere"}, "nowhere/bin holds no data made by fairseq-preprocess"),
        (["none"], {"LENGTH": "64"}, "LENGTH=64: data/mlm/bin has sentences of up to 128 pieces"),
        (["none"], {"LENGTH": "600"}, "LENGTH=600: longer than the 512 positions of the model"),
        (["none"], {"MAX_UPDATE": "some"}, "MAX_UPDATE must be a positive number, got 'some'"),
        (["none"], {"MAX_UPDATE": "0"}, "MAX_UPDATE must be a positive number, got '0'"),
        (["none"], {"LENGTH": "0"}, "LENGTH must be a positive number, got '0'"),
        (["none"], {"KEEP": "0"}, "KEEP must be a positive number, got '0'"),
        (["none"], {"NODES": "two"}, "NODES must be a number, got 'two'"),
        (["none"], {"PRECISION": "int8"}, "PRECISION 'int8': choose fp32, fp16 or bf16"),
    ],
)
def test_mistakes_are_said_in_one_line(
    place: Path, tmp_path: Path, arguments: list[str], settings: dict[str, str], complaint: str
) -> None:
    precision = settings.get("PRECISION", "fp32")
    (tmp_path / "python").write_text(f"#!/bin/sh\necho 0 {precision} 64 1 64\n", encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    settings = {"PYTHON": str(tmp_path / "python"), "SAVE_DIR": "wrong", **settings}
    said = run(PRETRAIN, *arguments, cwd=place, status=2, **settings).strip().split("\n")
    assert said[-1].startswith("error: ")
    assert complaint in said[-1]
    assert not (place / "wrong").exists()
