"""The fairseq-train commands of recipes: those of the papers and of the stored rows; what is given
over them; and what is refused in one line, with nothing written.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from diet_mt.bert.windows import About
from diet_mt.evaluation import options
from diet_mt.evaluation.options import shell
from diet_mt.evaluation.records import read_results
from diet_mt.experiments import devices
from diet_mt.experiments.devices import choose, split_update
from diet_mt.system.errors import UserError
from diet_mt.system.files import write_text

from ..checkpoints import config_of, state_of
from ..processes import called

Captured = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]
# Pairs of lines: a command of ours, and the one that it runs.
LINES = Path(__file__).with_name("commands.txt").read_text(encoding="utf-8").split("\n")[:-1]


EXAMPLES = {"CoLA": 8551, "STS-B": 5749, "XNLI": 392702}
WINDOWS = 88641  # of SQuAD


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora, tasks and a pretrained encoder, under the names that the golden commands have."""
    folder = tmp_path_factory.mktemp("training")
    for corpus, files in {
        "multi30k.en-de": "train.en-de.en.idx bpe.codes",
        "wmt18.de-en": "train.de-en.de.idx test.de-en.de.idx bpe.codes",
        "wmt18.cs-en": "train.cs-en.cs.idx spm.model",
        "mlm": "",
        "mlm.xx": "",
    }.items():
        made = folder / "data" / corpus / "bin"
        made.mkdir(parents=True)
        for name in ("dict.txt", *files.split()):
            (made / name).touch()
    (folder / "data" / "mlm" / "bin" / "max-length").write_text("128\n", encoding="utf-8")
    for task, count in EXAMPLES.items():
        raw = folder / ("" if task == "XNLI" else "glue") / task / "raw"
        raw.mkdir(parents=True)
        (raw / "train.id").write_text("0\n" * count, encoding="utf-8")
    (folder / "SQuAD" / "train").mkdir(parents=True)
    about = About("train.json", "0" * 64, "en", "squad", 384, 128, 64, 9, WINDOWS, 9)
    write_text(folder / "SQuAD" / "train" / "about.json", json.dumps(dataclasses.asdict(about)))
    write_text(folder / "damaged" / "train" / "about.json", "{")
    # A small diet-rel encoder, without its weights.
    words = ["data", "--task", "masked_lm", "--criterion", "masked_lm", "--save-dir", "x"]
    words += ["--arch", "roberta_diet_rel_tiny", "--encoder-layers", "2"]
    words += ["--max-source-positions", "24", "--tokens-per-sample", "24"]
    torch.save(state_of(config_of(*words)), folder / "pre.pt")
    return folder


def options_of(words: list[str]) -> dict[str, str]:
    """Option -> its value; "" -> program and data."""
    given = {name[2:]: " ".join(values) for name, values in options.options_of(words).items()}
    given.pop("user-dir", None)
    return given


Printed = Callable[..., dict[str, str]]


@pytest.fixture
def printed(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Printed:
    """The output of ``--dry-run``, as options."""
    monkeypatch.chdir(place)
    capsys.readouterr()

    def printed(*words: object) -> dict[str, str]:
        assert called(*words, "--dry-run") == 0, capsys.readouterr().err
        return options_of(shlex.split(capsys.readouterr().out.strip()))

    return printed


@pytest.mark.parametrize(("ours", "expected"), list(zip(LINES[::2], LINES[1::2], strict=True)))
def test_the_commands_of_the_papers(printed: Printed, ours: str, expected: str) -> None:
    before = sorted(Path().rglob("*"))
    assert printed(*shlex.split(ours)[1:]) == options_of(shlex.split(expected))
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("recipe", ["multi30k", "mixed"])
def test_the_recipe_is_that_of_the_stored_rows(printed: Printed, recipe: str) -> None:
    rows = read_results(ROOT / f"results/{recipe}.en-de.jsonl")
    assert rows
    for row in {row.system: row for row in rows}.values():
        trained = options_of(shlex.split(shell(row.training)))
        given = ["--seed", row.seed, "--save-dir", trained["save-dir"]]
        for name in [name for name in trained if name.startswith("position-")]:
            given += [f"--{name}", *trained[name].split()]
        data = trained[""].split()[1]
        assert printed("train", data, row.arch, "--recipe", recipe, *given) == trained


TRAIN = "train data/multi30k.en-de shaw_tiny --recipe multi30k --save-dir new"
WMT18 = "train data/wmt18.de-en none_base --recipe table4 --save-dir new"
MIXED = "train data/mixed.en-de none_base --recipe mixed.base --save-dir new"
MLM = "pretrain data/mlm shaw --recipe mlm --save-dir new --gpus 0"
COLA = "finetune glue/CoLA pre.pt --recipe glue --save-dir new"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (f"{TRAIN} --lr 0.1 --position-clip=5", "--lr 0.1 --position-clip 5"),
        (f"{TRAIN} --max-update 7", "--max-update 7"),  # and no --max-epoch
        (f"{TRAIN} --seed 3 --precision bf16", "--seed 3 --bf16"),
        (f"{TRAIN} -s de -t en", "--source-lang de --target-lang en"),
        (
            f"{TRAIN} --gpus 0 --tokens-per-update 8192",
            "--max-tokens 1024 --update-freq 8 --distributed-world-size 1 --cpu",
        ),
        (f"{TRAIN} --stop-time-hours 2", "--stop-time-hours 2"),
        (f"{WMT18} --gpus 1 --precision fp16", "--max-tokens 8192 --update-freq 4 --fp16"),
        (f"{MIXED} --max-update 700", "--warmup-updates 70 --total-num-update 700"),
        (f"{MLM} --optimizer lamb", "--lamb-betas '(0.9, 0.999)' --lamb-eps 1e-6"),
        (f"{MLM} --max-update 2000", "--warmup-updates 50 --total-num-update 2000"),
        (
            f"{MLM} --sequences-per-update 96 --max-tokens-per-device 4096",
            "--batch-size 32 --update-freq 3",
        ),
        (f"{COLA} --batch-size 16", "--total-num-update 2675 --warmup-updates 267"),
        (f"{COLA} --max-update 100", "--total-num-update 100 --warmup-updates 10"),
        (f"{COLA} --segments none", "--segment-encoding none --encoder-layers 2"),
    ],
)
def test_given_options_go_over_the_recipe(printed: Printed, words: str, expected: str) -> None:
    command = printed(*words.split())
    assert options_of(shlex.split(expected)).items() <= command.items()
    assert ("max-update" in command) + ("max-epoch" in command) == 1
    assert ("adam-betas" in command) is (command["optimizer"] == "adam")


def test_slurm_gives_the_first_machine(
    printed: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\nprintf 'node-a\\nnode-b\\n'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name, value in {"NODEID": "1", "STEP_NUM_NODES": "2", "STEP_NODELIST": "node-[ab]"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    command = printed(*WMT18.split())
    assert command["distributed-init-method"] == "tcp://node-a:29500"
    assert (command["distributed-rank"], command["distributed-world-size"]) == ("1", "2")


@pytest.mark.parametrize("ceiling", [4096, 24999, 25000])
def test_an_update_is_the_same_for_any_number_of_gpus(ceiling: int) -> None:
    for count in range(1, 130):
        batches = split_update(25000, ceiling, count)
        assert batches.tokens <= ceiling
        assert batches.total == batches.tokens * batches.per_update * count
        assert 0 <= 25000 - batches.total < batches.per_update * count
        # With one batch less they would not fit.
        assert (batches.per_update - 1) * count * ceiling < 25000
    for tokens, ceiling, count in ((7, 8192, 8), (3, 1, 2), (7, 0, 1), (7, 1, 0)):
        with pytest.raises(UserError, match=f"{tokens} cannot be divided"):
            split_update(tokens, ceiling, count)


AMPERE, TURING, HOPPER = (8, 0), (7, 5), (9, 0)


@pytest.mark.parametrize(
    ("gpus", "precision", "seen", "expected"),
    [
        ("auto", "auto", [], (0, "fp32")),
        ("auto", "auto", [AMPERE] * 8, (8, "bf16")),
        ("auto", "auto", [HOPPER], (1, "bf16")),
        ("auto", "auto", [TURING], (1, "fp16")),
        ("auto", "auto", [AMPERE, TURING], (2, "fp16")),
        ("auto", "fp16", [AMPERE], (1, "fp16")),
        ("1", "auto", [AMPERE, TURING], (1, "bf16")),
        ("0", "auto", [AMPERE], (0, "fp32")),
        ("8", "fp16", [], (8, "fp16")),
    ],
)
def test_the_precision_is_one_that_all_gpus_have(
    gpus: str, precision: str, seen: list[tuple[int, int]], expected: tuple[int, str]
) -> None:
    assert choose(gpus, precision, seen) == expected


WRONG = [
    (TRAIN.replace("--recipe", "--recpie"), "--recpie; did you mean --recipe?"),
    (TRAIN.replace("shaw_", "shwa_"), "shwa_tiny; did you mean shaw_tiny?"),
    (TRAIN.replace("data/multi30k.en-de", "data/gone"), "data/gone"),
    (TRAIN.replace("data/multi30k.en-de", "data/mlm"), "bin: no sentence pairs"),
    (f"{TRAIN} --droput 0.3", "--droput; did you mean --dropout?"),
    (f"{TRAIN} --share-all-embeddings yes", "yes"),
    (f"{TRAIN} --seed -1", "--seed"),
    (f"{TRAIN} --max-tokens-per-device 9", "--max-tokens-per-device"),
    (TRAIN.replace(" shaw", " roberta_shaw"), "roberta_shaw_tiny"),
    (f"{TRAIN} --bf16", "--bf16"),
    (f"{TRAIN} --gpus 8 --precision auto", "--gpus 8"),
    (f"{TRAIN} --nodes 2", "--master"),
    (f"{TRAIN} --source-lang de", "--source-lang, --target-lang"),
    (f"{TRAIN} --restore-file gone.pt", "gone.pt"),
    (f"{WMT18} --max-tokens 9", "--max-tokens"),
    (f"{WMT18} --nodes 2 --gpus 1 --precision fp32 --master a:1", "CUDA_VISIBLE_DEVICES"),
    (f"{MLM} --tokens-per-sample 64", "data/mlm/bin has sentences of up to 128 pieces"),
    (f"{MLM} --tokens-per-sample 256 --max-source-positions 128", "--max-source-positions 128"),
    (COLA.replace("glue/CoLA", "damaged"), "damaged/train/about.json"),
    (f"{COLA} --system learned", "learned"),
]


@pytest.mark.hostile
@pytest.mark.parametrize(("command", "datum"), WRONG)
def test_a_mistake_is_one_line(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, capsys: Captured, command: str, datum: str
) -> None:
    monkeypatch.setattr(devices, "visible_gpus", list)
    before = sorted(Path().rglob("*"))
    assert called(*shlex.split(command)) == 2
    out, err = capsys.readouterr()
    assert datum in err
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    assert sorted(Path().rglob("*")) == before
