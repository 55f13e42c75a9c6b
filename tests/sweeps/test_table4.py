"""Table 4 is trained by the commands that the project's shell scripts ran before it had sweeps.

Only that Shaw's vectors are now those of Tensor2Tensor: on keys and values, of self-attention.
"""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from .stubs import sweep

KEPT = Path(__file__).with_name("table4.commands.txt")
# Those scripts had other data for these sweeps, or trained only some of their runs here.
ONLY = {
    "table4": [],
    "table4-vaswani": [f"direction=en-de,system={name}" for name in ("sinusoidal", "shaw")],
    "table4-small": ["direction=en-de,system=shaw"],
}


def options(command: str, folder: str = "FOLDER") -> dict[str, list[str]]:
    """The options of a fairseq-train, in any order, without the place of the plugin."""
    words = shlex.split(command.partition("fairseq-train ")[2].replace(folder, "FOLDER"))
    starts = [n for n, word in enumerate(words) if word.startswith("--")] + [len(words)]
    found = {words[a]: words[a + 1 : b] for a, b in pairwise(starts)}
    assert len(found) == len(starts) - 1, "one of them twice"
    return {"data": words[: starts[0]], **found, "--user-dir": []}


def run_of(found: dict[str, list[str]]) -> list[str]:
    return found["--source-lang"] + found["--target-lang"] + found["--arch"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that fairseq-preprocess seems to have made."""
    for corpus in ("wmt18.de-en", "wmt18.cs-en", "newstest.en-de", "newstest.en-cs"):
        folder, pair = tmp_path / "data" / corpus / "bin", corpus.partition(".")[2]
        folder.mkdir(parents=True)
        for lang in pair.split("-"):
            names = (f"dict.{lang}.txt", *(f"{s}.{pair}.{lang}.idx" for s in ("train", "test")))
            for name in (*names, "bpe.codes", "preprocess.log"):
                (folder / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ONLY)
@pytest.mark.usefixtures("data")
def test_the_commands_of_table_4(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    chosen = [word for choice in ONLY[name] for word in ("--runs", choice)]
    assert sweep(name, "--dry-run", "--set", "train_options=[--gpus,0]", *chosen) == 0
    shown = [line for line in capfd.readouterr().out.splitlines() if "fairseq-train" in line]
    found = [options(line, line.split("--save-dir ")[1].split(" ")[0]) for line in shown]
    kept = [line.partition(": ") for line in KEPT.read_text(encoding="utf-8").splitlines()]
    wanted = [options(command) for sweep_name, _, command in kept if sweep_name == name]
    assert sorted(found, key=run_of) == sorted(wanted, key=run_of)
