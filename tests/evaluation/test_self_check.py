"""diet-mt verify of checkpoints and prepared data: OK, or what is wrong, a line each."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ..calling import called

pytestmark = pytest.mark.hostile

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A training's folder of one checkpoint, without its data."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(place / "run", tmp_path / "run")).relative_to(tmp_path)


def test_what_a_checkpoint_is(run: Path, capsys: Captured) -> None:
    assert called("verify", run) == 0
    said = capsys.readouterr().out
    assert said.startswith("run/checkpoint_best.pt: OK, diet_rel_tiny (diet-rel sharing=none scal")
    assert "), en-de, " in said
    assert " parameters, 7 updates, seed 5, without the optimizer's state" in said
    assert said.endswith("trained by fairseq-train data/toy.en-de/bin --save-dir checkpoints/run\n")
    assert said.count("\n") == 1
    (run / "command").unlink()
    assert called("verify", run / "checkpoint_best.pt") == 0
    assert "trained by an unknown command" in capsys.readouterr().out


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        state = torch.load(path, weights_only=False)
        change(state)
        torch.save(state, path)

    return damage


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


KEY = "encoder.layers.0.fc1.weight"
DAMAGED = {
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-99]), "cut short or not a check"),
    "half": (
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        "cut short or not a checkpoint",
    ),
    "empty": (lambda path: path.write_bytes(b""), "not a checkpoint"),
    "text": (lambda path: path.write_text("no checkpoint\n"), "not a checkpoint"),
    "a bit": (flipped, "damaged, in "),
    "another file of torch": (lambda path: torch.save({"x": 1}, path), "not a checkpoint of fairs"),
    "a list": (lambda path: torch.save([], path), "not a checkpoint of fairseq-train, for it has"),
    "nothing": (lambda path: torch.save({}, path), "not a checkpoint of fairseq-train, for it has"),
    "no configuration": (
        changed(lambda state: state.update(cfg=None)),
        "not a checkpoint of fairseq-train, for it has no configuration",
    ),
    "missing tensor": (
        changed(lambda state: state["model"].pop(KEY)),
        "Missing key(s) in state_d",
    ),
    "one too many": (
        changed(lambda state: state["model"].update(more=torch.ones(1))),
        "Unexpected key(s) in state_dict",
    ),
    "another shape": (
        changed(lambda state: state["model"].update({KEY: torch.ones(2, 2)})),
        f"size mismatch for {KEY}",
    ),
    "no embeddings": (
        changed(lambda state: state["model"].pop("encoder.embed_tokens.weight")),
        "incomplete, it has no embeddings of words",
    ),
    "not finite": (
        changed(lambda state: state["model"][KEY].fill_(float("nan"))),
        f"{KEY} is not finite; the training has diverged",
    ),
    "integers": (
        changed(lambda state: state["model"].update({KEY: state["model"][KEY].long()})),
        f"{KEY} is torch.int64, but the model's is torch.float32",
    ),
    "no place in the data": (
        changed(lambda state: state["extra_state"].clear()),
        "incomplete, it does not say how far the training is",
    ),
    "optimizer not finite": (
        changed(lambda state: with_optimizer(state)[1]["exp_avg"].fill_(float("inf"))),
        "exp_avg of the optimizer, parameter 1 is not finite",
    ),
    "optimizer without a parameter": (
        changed(lambda state: with_optimizer(state).pop(2)),
        "incomplete, the optimizer's state lacks some of parameter 2",
    ),
    "optimizer without a part": (
        changed(lambda state: with_optimizer(state)[0].pop("exp_avg_sq")),
        "incomplete, the optimizer's state lacks some of parameter 0",
    ),
    "optimizer without all": (
        changed(lambda state: with_optimizer(state).clear()),
        "incomplete, the optimizer's state lacks some of parameter 0",
    ),
    "a model that could run code": (
        changed(lambda state: state["cfg"]["model"].update(_name="wav2vec2")),
        "untrusted model wav2vec2",
    ),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_checkpoint(run: Path, capsys: Captured, kind: str) -> None:
    damage, what = DAMAGED[kind]
    path = run / "checkpoint_best.pt"
    damage(path)
    before = sorted(Path().rglob("*"))
    assert called("verify", run) == 2
    said = capsys.readouterr()
    assert said.out.startswith(f"{path}: ")
    assert what in said.out
    assert said.out.count("\n") == 1
    assert said.err == "error: 1 of 1 checks failed\n"
    assert sorted(Path().rglob("*")) == before


def test_a_whole_optimizer_is_taken(run: Path, capsys: Captured) -> None:
    changed(with_optimizer)(run / "checkpoint_best.pt")
    assert called("verify", run) == 0
    assert "without the optimizer's state" not in capsys.readouterr().out


def test_a_checkpoint_names_no_file_to_write(run: Path, capsys: Captured) -> None:
    path = run / "checkpoint_best.pt"
    changed(lambda state: state["cfg"]["task"].update(source_lang="/../../../outside"))(path)
    assert called("verify", path) == 2
    assert "source_lang" in capsys.readouterr().out
    assert sorted(each.name for each in Path().rglob("*out*")) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("gone", "gone: no such file or folder"),
        ("empty", "empty: holds neither prepared data nor checkpoints"),
        ("r.jsonl", "r.jsonl: give --references"),
        ("a.json", "a.json: give --references"),
    ],
)
def test_wrong_uses(run: Path, capsys: Captured, words: str, said: str) -> None:
    Path("empty").mkdir()
    assert called("verify", words) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_data_and_checkpoints_together(run: Path, place: Path, capsys: Captured) -> None:
    shutil.copytree(place / "data" / "toy.en-de", "toy")
    (run / "checkpoint_best.pt").unlink()
    Path("toy/bin/dict.de.txt").write_text("word 1\n", encoding="utf-8")
    assert called("verify", "toy", run) == 2
    said = capsys.readouterr()
    assert "toy/bin/train.en-de.de.bin: has token " in said.out
    assert "run: finished, but its checkpoints are gone\n" in said.out
    assert said.err == "error: 2 of 2 checks failed\n"
