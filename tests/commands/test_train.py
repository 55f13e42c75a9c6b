"""diet-mt train with tiny numbers, by fairseq-train: the same lines of code as with the paper's."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from diet_mt.evaluation.checkpoint import read_training
from diet_mt.evaluation.records import read_results
from diet_mt.experiments import train

from ..processes import called
from .runner import Runner, finish, start
from .test_resume import free_port
from .workshop import IN_ONE, write_corpus

LANGUAGES = {"src": "de", "tgt": "en"}
DATA = "data/wmt18.de-en"
# Batches of 400 tokens, of which the corpus has seven; two for an update, so four updates an epoch.
# fairseq writes no numbered checkpoint where an epoch ends: after 4, 8, 12 updates.
TINY = """
extends: {base}
training:
  tokens-per-update: 800
  max-tokens-per-device: 400
  max-update: 15
  save-interval-updates: 5
  validate-interval-updates: 5
  keep-interval-updates: 2
  lr: 0.003
  warmup-updates: 10
  log-interval: 5
  eval-bleu-args: '{{"beam": 2, "lenpen": 0.6, "max_len_a": 1.2, "max_len_b": 10}}'
"""


@pytest.fixture(scope="module")
def place(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a prepared corpus, one for both directions, and two recipes."""
    folder = tmp_path_factory.mktemp("wmt18")
    raw, made = folder / DATA / "raw", folder / DATA / "bin"
    raw.mkdir(parents=True)
    write_corpus(raw)
    for path in list(raw.iterdir()):
        path.rename(path.with_suffix(f".{LANGUAGES[path.suffix[1:]]}"))
    parts = [(f"--{part}pref", raw / part) for part in ("train", "valid", "test")]
    languages = ("--source-lang", "de", "--target-lang", "en", "--joined-dictionary")
    runner("preprocess", languages, *parts, "--destdir", made).ok()
    (made / "bpe.codes").touch()
    for name in ("table4", "table4-vaswani"):
        (folder / f"{name}.yaml").write_text(TINY.format(base=name), encoding="utf-8")
    return folder


def training(save: str, *more: object, recipe: str = "table4") -> tuple[object, ...]:
    into = ("--source-lang", "en", "--target-lang", "de")
    given = ("--recipe", f"{recipe}.yaml", "--gpus", 0, "--save-dir", save, *into, *IN_ONE, *more)
    return ("train", DATA, "diet_rel_tiny", *given)


def test_killed_resumed_averaged_and_scored(
    place: Path, forked: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real kills, and the end of a training that was never killed: test_resume, tests/slow."""
    monkeypatch.chdir(place)

    def output(*words: object) -> str:
        assert called(*words) == 0
        captured = capsys.readouterr()
        return captured.out + captured.err

    save = place / "killed"

    def killed(words: list[str], **given: Any) -> int:
        run_child([*words, "--max-update", "10"], **given)
        return -signal.SIGKILL

    run_child = train.run_child
    monkeypatch.setattr(train, "run_child", killed)
    assert called(*training("killed")) == 2
    monkeypatch.setattr(train, "run_child", run_child)
    assert (save / "checkpoint_3_10.pt").exists()
    assert not (save / "done").exists()
    note = "1 x CPU, fp32, 2 x 400 tokens on each: 800 tokens for an update"
    assert note in output(*training("killed"))
    log = (save / "train.log").read_text(encoding="utf-8")
    assert re.search(r"Loaded checkpoint .*/checkpoint_last.pt \(epoch \d+ @ [1-9]\d* up", log)
    assert re.search(r"valid on 'valid' subset .*\| bleu [\d.]+ .*\| num_updates 15 ", log)
    names = {path.name for path in save.iterdir()}
    assert {name for name in names if re.match(r"checkpoint_\d", name)} == {
        "checkpoint_3_10.pt",
        "checkpoint_4_15.pt",
    }
    assert list((save / "tensorboard").rglob("events.*"))
    assert "--cpu" not in (save / "command").read_text(encoding="utf-8")

    average = "killed/checkpoint_average.pt"
    output("average", "--last", 2, "--dir", "killed", "--out", average)
    facts = read_training(place / average, place / DATA / "bin")
    assert (facts["averaged"], facts["updates"]) == (2, 15)
    # Each epoch sees every word and end mark of the target once, in four updates.
    target = (place / DATA / "raw" / "train.de").read_text(encoding="utf-8")
    epoch = len(target.split()) + target.count("\n")
    assert facts["train_tokens"] == pytest.approx(15 / 4 * epoch, rel=0.05)
    output("evaluate", DATA, average, "--length-penalty", "gnmt", "--beam", 2, "--max-len-b", 12)
    (row,) = read_results(place / "results" / "wmt18.de-en.jsonl")
    assert (row.direction, row.averaged, row.length_penalty) == ("en-de", 2, "gnmt")
    assert (row.system, row.sentences, row.train_tokens) == ("diet_rel", 37, facts["train_tokens"])


@pytest.mark.slow
def test_two_machines(place: Path) -> None:
    given = ("--max-update", 4, "--nodes", 2, "--master", f"127.0.0.1:{free_port()}")
    machines = [
        start(*training("two", *given, "--node-rank", rank, recipe="table4-vaswani"), cwd=place)
        for rank in (0, 1)
    ]
    first, _ = [finish(machine) for machine in machines]
    assert "2 x CPU, fp32, 1 x 400 tokens on each: 800 tokens for an update" in first
    log = (place / "two" / "train.log").read_text(encoding="utf-8")
    assert "training on 2 devices" in log
    assert re.search(r"\| bleu [\d.]+ ", log)
    assert {"done", "train.1.log"} <= {path.name for path in (place / "two").iterdir()}
    command = (place / "two" / "command").read_text(encoding="utf-8")
    assert "--distributed-world-size 2" in command
