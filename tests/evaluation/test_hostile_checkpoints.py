"""Every command that reads a checkpoint, with each kind of file that is none: one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ..calling import called

pytestmark = pytest.mark.hostile

DATA = "data/toy.en-de"
COMMANDS = {
    "average": "average FILE --out out.pt",
    "parity": f"parity FILE --data {DATA} --beam 1",
    "evaluate": f"evaluate {DATA} FILE --beam 1 --max-len-b 3",
    "verify": "verify FILE",
    "figures": f"figures FILE --data {DATA}/bin --out figures --only heads",
    "theorems": f"theorems FILE --data {DATA}/bin",
    "predict": "predict CoLA FILE",
    "answer": f"answer {DATA}/bin FILE --out answers --split valid",
    "finetune": "finetune CoLA FILE --recipe glue-small --save-dir tuned",
}
# What becomes of the bytes, or of what they hold: the last of a path and its new value.
BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "text": lambda whole: b"no checkpoint\n",
    "cut": lambda whole: whole[: len(whole) // 2],
}
TABLES: dict[str, tuple[Any, ...]] = {
    "no options": ("cfg", None),
    "options in a list": ("cfg", ["model"]),
    "no options of the model": ("cfg", "model", None),
    "options of the model in a list": ("cfg", "model", [1, 2]),
    "a number for the architecture": ("cfg", "model", "_name", 7),
    "text for a number": ("cfg", "model", "encoder_layers", "six"),
    "text for a share": ("cfg", "model", "dropout", "half"),
    "a list for a number": ("cfg", "model", "encoder_attention_heads", [4]),
    "a number for a task": ("cfg", "task", 7),
    "no weights": ("model", None),
    "text for weights": ("model", "encoder.embed_tokens.weight", "text"),
    "weights of another shape": ("model", "encoder.embed_tokens.weight", torch.zeros(3, 128)),
    "no history": ("optimizer_history", []),
    "text for numbers of updates": ("optimizer_history", ["x"]),
}
# Averaging builds no model, and takes over options.
AVERAGED = {name for name, path in TABLES.items() if path[:2] == ("cfg", "model") and path[3:]}
AVERAGED |= {"weights of another shape"}


@pytest.fixture(scope="module")
def folder(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data, a task without examples, and each file."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "data").symlink_to(place / "data")
    for name, text in {
        "input0/dict.txt": "a 1\n",
        "label/dict.txt": "0 1\n",
        "raw/train.id": "",
    }.items():
        (folder / "CoLA" / name).parent.mkdir(parents=True)
        (folder / "CoLA" / name).write_text(text)
    good = place / "run" / "checkpoint_best.pt"
    for name, changed in BYTES.items():
        (folder / f"{name}.pt").write_bytes(changed(good.read_bytes()))
    for name, (*path, last, value) in TABLES.items():
        state = inner = torch.load(good, weights_only=True)
        for key in path:
            inner = inner[key]
        inner[last] = value
        torch.save(state, folder / f"{name}.pt")
    return folder


@pytest.mark.parametrize("fault", [*BYTES, *TABLES])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_checkpoint_is_one_line(
    command: str,
    fault: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if command == "average" and fault in AVERAGED:
        return
    monkeypatch.chdir(folder)
    file = f"{fault}.pt"
    before = {path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    assert called(*(file if word == "FILE" else word for word in COMMANDS[command].split())) == 2
    said = capsys.readouterr()
    (line,) = (line for line in said.err.split("\n") if line.startswith("error: "))
    assert len(line) < 900
    assert file in said.out + line
    assert {path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"} == before
