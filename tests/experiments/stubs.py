"""Sweeps of commands that do next to nothing; the few files that dry runs of trainings read."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import torch

from diet_mt.bert.windows import About
from diet_mt.system.files import write_text

from ..checkpoints import config_of, state_of
from ..commands import runner
from ..processes import called, wait_until

# stub.sh WHAT FOLDER [SCRIPT]: runs the script once, and writes so to the journal. That line alone
# means that it is done: a kill between two marks would leave one of them.
STUB = """\
if grep -qsx "end $1 $2" journal; then echo "$1: done before"; exit; fi
echo "begin $1 $2" >>journal
eval "$3"
mkdir -p "$2" && touch "$2/$1.done"
echo "end $1 $2" >>journal
"""
SWEEP = """\
about: four runs
settings: {checkpoints: runs, work: "true"}
prepare: ["sh stub.sh prepare {checkpoints}"]
runs:
  - {model: [none, shaw], seed: [1, 2]}
folder: "{checkpoints}/{model}.{seed}"
run: ["sh stub.sh train {folder} {work}", "sh stub.sh evaluate {folder}"]
report: ["echo {folder}"]
"""
NAMES = ["none.1", "none.2", "shaw.1", "shaw.2"]
TABLE = " ".join(f"runs/{name}" for name in NAMES) + "\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with mine.yaml."""
    (tmp_path / "stub.sh").write_text(STUB, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(SWEEP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(*words: str) -> int:
    """The status of ``diet-mt sweep``, in this process."""
    return called("sweep", *words)


def start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    """``diet-mt sweep`` in a process group of its own."""
    return runner.start("sweep", *words, cwd=cwd)


def wait_for(text: str, file: Path) -> None:
    """Returns once the file has this text."""
    wait_until(lambda: file.exists() and text in file.read_text(encoding="utf-8"))


def kill_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


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
