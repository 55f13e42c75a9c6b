"""Damaged and hostile checkpoints: verify names the fault, and each command ends in one line."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ..processes import called

pytestmark = pytest.mark.hostile

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A training's folder of one checkpoint, without its data."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(place / "run", tmp_path / "run")).relative_to(tmp_path)


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        state = torch.load(path, weights_only=False)
        change(state)
        torch.save(state, path)

    return damage


def put(*path: Any) -> Callable[[Path], None]:
    """Sets an entry of a checkpoint: keys, then the value."""

    def change(state: dict[str, Any]) -> None:
        *keys, last, value = path
        for key in keys:
            state = state[key]
        state[last] = value

    return changed(change)


def part(share: float) -> Callable[[Path], object]:
    """Leaves so much of a file."""
    return lambda path: path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def flipped(path: Path) -> None:
    """One byte within a tensor, which torch itself reads without a word."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    torch.load(path, weights_only=False)


def with_optimizer(state: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Puts Adam's state of three parameters into a checkpoint."""
    entries = {
        number: {"step": 7, "exp_avg": torch.ones(2), "exp_avg_sq": torch.ones(2)}
        for number in range(3)
    }
    groups = [{"params": list(entries), "lr": 0.1}]
    state["last_optimizer_state"] = {"state": entries, "param_groups": groups}
    return entries


def compressed(path: Path) -> None:
    """With a wrong checksum, for whoever unpacks it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(100_000))
        checksum = archive.infolist()[0].CRC.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(checksum, bytes(4)))


KEY = "encoder.layers.0.fc1.weight"
DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "half": (part(0.5), ""),
    "empty": (part(0), ""),
    "a bit": (flipped, ""),
    "compressed": (compressed, "compressed"),
    "another file of torch": (lambda path: torch.save({"x": 1}, path), ""),
    "no configuration": (put("cfg", None), ""),
    "missing tensor": (changed(lambda state: state["model"].pop(KEY)), KEY),
    "one too many": (put("model", "more", torch.ones(1)), "more"),
    "integers": (put("model", KEY, torch.ones(256, 128).long()), f"{KEY} is torch.int64"),
    "another shape": (put("model", KEY, torch.ones(2, 2)), KEY),
    "no embeddings": (
        changed(lambda state: state["model"].pop("encoder.embed_tokens.weight")),
        "embeddings",
    ),
    "not finite": (changed(lambda state: state["model"][KEY].fill_(float("nan"))), KEY),
    "no place in the data": (put("extra_state", {}), ""),
    "optimizer not finite": (
        changed(lambda state: with_optimizer(state)[1]["exp_avg"].fill_(float("inf"))),
        "exp_avg of the optimizer, parameter 1",
    ),
    "optimizer without a parameter": (
        changed(lambda state: with_optimizer(state).pop(2)),
        "parameter 2",
    ),
    "optimizer without a part": (
        changed(lambda state: with_optimizer(state)[0].pop("exp_avg_sq")),
        "parameter 0",
    ),
    "a model that could run code": (put("cfg", "model", "_name", "wav2vec2"), "wav2vec2"),
    "a language that is a path": (
        put("cfg", "task", "source_lang", "/../../../escaped"),
        "source_lang",
    ),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_checkpoint(run: Path, capsys: Captured, kind: str) -> None:
    damage, named = DAMAGED[kind]
    path = run / "checkpoint_best.pt"
    damage(path)
    before = sorted(Path().rglob("*"))
    assert called("verify", run) == 2
    line = capsys.readouterr().out
    assert line.startswith(f"{path}: ")
    assert named in line
    assert "OK" not in line
    assert line.count("\n") == 1
    assert sorted(Path().rglob("*")) == before
    assert not list(Path("..").glob("*escaped*"))


def test_what_a_checkpoint_is(run: Path, capsys: Captured) -> None:
    path = run / "checkpoint_best.pt"
    assert called("verify", run) == 0
    line = capsys.readouterr().out
    facts = ("OK", "diet_rel_tiny (diet-rel sharing=none", "en-de", "7 updates, seed 5")
    for fact in (*facts, "without the optimizer", "fairseq-train data/toy.en-de/bin"):
        assert fact in line
    assert line.count("\n") == 1
    changed(with_optimizer)(path)
    assert called("verify", path) == 0
    assert "without the optimizer" not in capsys.readouterr().out


def test_data_and_checkpoints_together(run: Path, place: Path, capsys: Captured) -> None:
    shutil.copytree(place / "data" / "toy.en-de", "toy")
    (run / "checkpoint_best.pt").unlink()
    Path("toy/bin/dict.de.txt").write_text("word 1\n", encoding="utf-8")
    Path("empty").mkdir()
    assert called("verify", "toy", run) == 2
    out = capsys.readouterr().out
    assert "toy/bin/train.en-de.de.bin: has token " in out
    assert "run: finished" in out
    for name in ("gone", "empty", "r.jsonl", "a.json"):
        assert called("verify", name) == 2
        assert capsys.readouterr().err.startswith(f"error: {name}: ")


DATA = "data/toy.en-de"
COMMANDS = {
    "average": "average FILE --out out.pt",
    "evaluate": f"evaluate {DATA} FILE --beam 1 --max-len-b 3",
    "figures": f"figures FILE --data {DATA}/bin --out figures --only heads",
    "predict": "predict CoLA FILE",
    "answer": f"answer {DATA}/bin FILE --out answers --split valid",
    "finetune": "finetune CoLA FILE --recipe glue-small --save-dir tuned",
}
# Files that are no checkpoint, for each command; and changed ones, of which some are of one kind.
FAULTS = {
    **{name: DAMAGED[name][0] for name in ("empty", "half")},
    "no options": put("cfg", None),
    "a number for a task": put("cfg", "task", 7),
    "text for weights": put("model", "encoder.embed_tokens.weight", "text"),
    "no history": put("optimizer_history", []),
}
OF_MODELS = {
    "options in a list": put("cfg", ["model"]),
    "text for a number": put("cfg", "model", "encoder_layers", "six"),
    "weights of another shape": put("model", "encoder.embed_tokens.weight", torch.zeros(3, 128)),
}


@pytest.fixture(scope="module")
def folder(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data, a task without examples, and each file."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "data").symlink_to(place / "data")
    files = {"input0/dict.txt": "a 1\n", "label/dict.txt": "0 1\n", "raw/train.id": ""}
    for name, text in files.items():
        (folder / "CoLA" / name).parent.mkdir(parents=True)
        (folder / "CoLA" / name).write_text(text)
    for name, damage in (FAULTS | OF_MODELS).items():
        damage(Path(shutil.copy(place / "run" / "checkpoint_best.pt", folder / f"{name}.pt")))
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_checkpoint_is_one_line(
    command: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.chdir(folder)
    # Averaging builds no model, and copies its options; others read checkpoints by one function.
    faults = [*FAULTS, *(OF_MODELS if command in ("evaluate", "finetune") else ())]
    before = {path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    for fault in faults:
        file = f"{fault}.pt"
        words = (file if word == "FILE" else word for word in COMMANDS[command].split())
        assert called(*words) == 2, fault
        streams = capsys.readouterr()
        (line,) = (line for line in streams.err.split("\n") if line.startswith("error: "))
        assert len(line) < 900
        assert file in streams.out + line
    assert {p for p in folder.rglob("*") if p.is_file() and p.name != ".lock"} == before
    record_property("hostile", len(faults))
