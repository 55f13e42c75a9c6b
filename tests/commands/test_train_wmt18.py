"""scripts/train-wmt18.sh with tiny numbers: the same lines of code as with the paper's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diet_mt.evaluation.checkpoint import read_training
from diet_mt.evaluation.records import read_results

from .corpus import write_corpus
from .runner import Runner
from .scripts import EVALUATE, TRAIN_WMT18, finish, kill_when, run, start
from .test_two_processes import free_port

LANGUAGES = {"src": "de", "tgt": "en"}
# Batches of 400 tokens, of which the corpus has seven; two for an update, so four updates an epoch.
# fairseq writes no numbered checkpoint where an epoch ends: after 4, 8, 12 updates.
TINY = {
    "SIZE": "tiny",
    "GLOBAL_BATCH": "800",
    "MAX_TOKENS": "400",
    "MAX_UPDATE": "15",
    "SAVE_EVERY": "5",
    "LR": "0.003",
    "WARMUP": "10",
    "LOG_INTERVAL": "5",
}


@pytest.fixture(scope="module")
def place(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a prepared corpus, data/wmt18.de-en, one for both directions."""
    folder = tmp_path_factory.mktemp("wmt18")
    raw, made = folder / "data" / "wmt18.de-en" / "raw", folder / "data" / "wmt18.de-en" / "bin"
    raw.mkdir(parents=True)
    write_corpus(raw)
    for path in list(raw.iterdir()):
        path.rename(path.with_suffix(f".{LANGUAGES[path.suffix[1:]]}"))
    parts = [(f"--{part}pref", raw / part) for part in ("train", "valid", "test")]
    languages = ("--source-lang", "de", "--target-lang", "en", "--joined-dictionary")
    runner("preprocess", languages, *parts, "--destdir", made).ok()
    (made / "bpe.codes").touch()
    return folder


def changed(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_killed_resumed_averaged_and_scored(place: Path) -> None:
    arguments = ("en-de", "diet-rel")
    save = place / "checkpoints" / "wmt18.en-de.t2t" / "diet_rel.1"
    settings = TINY | {"AVERAGE": "2"}
    # By then checkpoint_last.pt is there, from 5 updates or from these.
    kill_when(start(TRAIN_WMT18, *arguments, cwd=place, **settings), save / "checkpoint_3_10.pt")
    assert (save / "checkpoint_3_10.pt").exists()
    assert not (save / "done").exists()

    said = run(TRAIN_WMT18, *arguments, cwd=place, **settings)
    assert "1 x 0 GPUs, fp32, batches of 400 tokens, 2 on each of them" in said
    assert re.search(r"Loaded checkpoint .*/checkpoint_last.pt \(epoch \d+ @ [1-9]\d* up", said)
    assert re.search(r"valid on 'valid' subset .*\| bleu [\d.]+ .*\| num_updates 15 ", said)
    names = {path.name for path in save.iterdir()}
    assert {"checkpoint_best.pt", "checkpoint_last.pt", "checkpoint_average.pt", "done"} <= names
    assert {name for name in names if re.match(r"checkpoint_\d", name)} == {
        "checkpoint_3_10.pt",
        "checkpoint_4_15.pt",
    }
    assert list((save / "tensorboard").rglob("events.*"))
    command = (save / "command").read_text(encoding="utf-8")
    for words in ("--source-lang en --target-lang de", "--update-freq 2", "--clip-norm 0 "):
        assert words in command
    assert "--cpu" not in command  # where it ran is not what it was

    before = changed(save)
    assert "is finished" in run(TRAIN_WMT18, *arguments, cwd=place, **settings)
    assert changed(save) == before

    training = read_training(save / "checkpoint_average.pt", place / "data" / "wmt18.de-en" / "bin")
    assert (training.averaged, training.updates) == (2, 15)
    # Each epoch sees every word and end mark of the target once, in four updates.
    target = (place / "data" / "wmt18.de-en" / "raw" / "train.de").read_text(encoding="utf-8")
    epoch = len(target.split()) + target.count("\n")
    assert training.train_tokens == pytest.approx(15 / 4 * epoch, rel=0.05)

    how = {"CHECKPOINT": "checkpoint_average.pt", "LENGTH_PENALTY": "gnmt"}
    run(EVALUATE, "data/wmt18.de-en/bin", save, cwd=place, **how)
    (row,) = read_results(place / "results" / "wmt18.de-en.jsonl")
    assert (row.direction, row.averaged, row.length_penalty) == ("en-de", 2, "gnmt")
    assert (row.system, row.sentences, row.train_tokens) == ("diet_rel", 37, training.train_tokens)


def test_two_machines_and_the_other_direction(place: Path) -> None:
    settings = TINY | {"MAX_UPDATE": "6", "SAVE_EVERY": "3", "SUBWORDS": "spm", "AVERAGE": "1"}
    settings |= {"NODES": "2", "MASTER": f"127.0.0.1:{free_port()}", "SETTING": "vaswani"}
    machines = [
        start(TRAIN_WMT18, "de-en", "sinusoidal", cwd=place, NODE_RANK=rank, **settings)
        for rank in (0, 1)
    ]
    first, _ = [finish(machine) for machine in machines]
    assert "2 x 0 GPUs, fp32, batches of 400 tokens, 1 on each of them for an update: 800" in first
    assert "training on 2 devices" in first
    assert re.search(r"\| bleu [\d.]+ ", first)
    save = place / "checkpoints" / "wmt18.de-en.spm.vaswani" / "sinusoidal.1"
    assert {"done", "checkpoint_average.pt", "train.1.log"} <= {p.name for p in save.iterdir()}
    assert "--distributed-world-size 2" in (save / "command").read_text(encoding="utf-8")
