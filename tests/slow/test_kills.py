"""Killed at random moments and called again, twice at once, without room: nothing lost or doubled.

Each command runs once undisturbed in one folder, and is disturbed in another, under the same names.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diet_mt.files import sha256

from ..bert.made_glue import write_glue
from ..commands.runner import ENVIRONMENT, ROOT
from ..commands.test_resume import same, state
from ..prepare.originals import write_multi30k, write_news
from ..prepare.running import SMALL, texts

pytestmark = [pytest.mark.slow, pytest.mark.hostile, pytest.mark.timeout(900)]

KILLS = 4
# Of a row; a checkpoint's checksum, too, is that of a file with readings of the clock.
TIMES = (
    "checkpoint_sha256",
    "sentences_per_second",
    "tokens_per_second",
    "words_per_second",
    "date",
    "revision",
)
TRAIN = "train data diet_rel_tiny --recipe demo --gpus 0 --save-dir run --max-update 24"
TRAIN += " --save-interval-updates 6 --keep-interval-updates 2"
DEMO = "--train-pairs 400 --valid-pairs 40 --test-pairs 30 --bpe-merges 200 --workers 2"
MLM = "pretrain mlm diet_rel --recipe mlm --size tiny --gpus 0 --save-dir run --max-update 12"
MLM += " --sequences-per-update 8 --max-tokens-per-device 2000 --tokens-per-sample 24"
MLM += " --save-interval-updates 4 --validate-interval-updates 4"
SWEEP = "sweep demo --jobs 2 --set train_options=[--max-update,8,--gpus,0]"
SWEEP += " --set system=[none,diet_rel] --set prepare_options=["
SWEEP += ",".join(DEMO.split()) + "]"
GLUE_SIZES = {"train": 120, "dev": 60, "test": 12}
GLUE = "prepare glue CoLA --from glue --vocab mlm --max-length 24 --workers 1 --out "
TUNE = "finetune CoLA pretrained/checkpoint_best.pt --recipe glue --gpus 0 --lr 0.003"
TUNE += " --max-epoch 3 --batch-size 16 --save-dir run"
SMALL_BPE = " ".join(SMALL)
MLM_DATA = "prepare mlm --train data/raw/train.en --valid data/raw/valid.en --vocab-size 120"
MLM_DATA += " --max-length 24 --workers 1 --out "
COMMANDS = {
    "prepare": f"prepare demo --out made {DEMO}",
    "multi30k": "prepare multi30k --out made --from multi30k --manifest multi30k/manifest "
    + SMALL_BPE,
    "newstest": f"prepare newstest en-cs --out made --from news {SMALL_BPE}",
    "prepare mlm": f"{MLM_DATA}made",
    "prepare glue": f"{GLUE}made",
    "train": TRAIN,
    "pretrain": MLM,
    "finetune": TUNE,
    "evaluate": "evaluate data trained --beam 4",
    "predict": "predict CoLA tuned/checkpoint_best.pt --predictions predicted --results rows",
    "average": "average --last 2 --dir trained --out mean.pt",
    "sweep": SWEEP,
}


def start(words: str, cwd: Path, limit: int = 0) -> subprocess.Popen[str]:
    """``limit``: bytes of a file that it may write, if any."""
    before = ["prlimit", f"--fsize={limit}"] if limit else []
    return subprocess.Popen(
        [*before, sys.executable, "-m", "diet_mt", *words.split()],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(words: str, cwd: Path, limit: int = 0) -> tuple[int, str]:
    process = start(words, cwd, limit)
    said = process.communicate()[0]
    return process.returncode, said


def done(words: str, cwd: Path) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    status, said = run(words, cwd)
    assert status == 0, said[-3000:]
    return time.monotonic() - began


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Original files, data of every kind, and a training of every kind."""
    folder = tmp_path_factory.mktemp("base")
    for name, write in (("multi30k", write_multi30k), ("news", write_news)):
        (folder / name).mkdir()
        write(folder / name)
    write_glue(folder / "glue", GLUE_SIZES)
    done(f"prepare demo --out data {DEMO}", folder)
    done(TRAIN.replace("run", "trained"), folder)
    done(f"{MLM_DATA}mlm", folder)
    done(MLM.replace("--save-dir run", "--save-dir pretrained"), folder)
    done(f"{GLUE}CoLA", folder)
    done(TUNE.replace("--save-dir run", "--save-dir tuned"), folder)
    return folder


def place(base: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("data", "mlm", "multi30k", "news", "glue", "CoLA", "pretrained"):
        (folder / name).symlink_to(base / name)
    for name in ("trained", "tuned"):
        shutil.copytree(base / name, folder / name)
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows, which must be of checkpoints that are there."""
    found = [
        json.loads(line)
        for path in sorted(folder.rglob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    there = {sha256(path) for path in folder.rglob("*.pt")} if found else set()
    assert {row["checkpoint_sha256"] for row in found} <= there
    kept = [{name: row[name] for name in row if name not in TIMES} for row in found]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True))


def left(folder: Path) -> dict[str, Any]:
    """All that a command made, without times, locks and logs."""
    found: dict[str, Any] = {"rows": rows(folder)}
    if (folder / "made").is_dir():
        found["data"] = texts(folder / "made")
    for path in sorted([*folder.rglob("*.hyp.txt"), *folder.glob("predicted/*")]):
        found[str(path.relative_to(folder))] = path.read_bytes()
    for path in sorted(folder.rglob("*.pt")):
        checkpoint = state(path.parent, path.name)
        # Beside these a checkpoint holds readings of the clock.
        parts = ("model", "last_optimizer_state", "averaged")
        found[str(path.relative_to(folder))] = {
            **{part: checkpoint.get(part) for part in parts},
            # One for each time that the training was called.
            "history": checkpoint["optimizer_history"][-1],
            "train_iterator": checkpoint["extra_state"]["train_iterator"],
        }
    return found


def assert_same(one: Path, other: Path) -> None:
    expected, found = left(one), left(other)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert same(value, found[name]), name
    unfinished = [path for end in ("part", "tmp") for path in other.rglob(f"*.{end}")]
    assert [path for path in unfinished if "decoded" not in path.parts] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_and_called_again(
    name: str, base: Path, tmp_path: Path, record_property: Any
) -> None:
    """SIGKILL of the whole group, again and again; then as if nothing had happened."""
    words = COMMANDS[name]
    whole, killed = (place(base, tmp_path / each) for each in ("whole", "killed"))
    seconds = done(words, whole)
    chance, held = random.Random(name), 0
    for _ in range(KILLS):
        process = start(words, killed)
        time.sleep(chance.uniform(0.1, 0.9) * seconds)
        if process.poll() is None:
            held += 1
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    record_property("hostile", held)
    done(words, killed)
    assert_same(whole, killed)
    done(words, killed)  # finished: nothing is done again
    assert_same(whole, killed)


@pytest.mark.parametrize(
    "name", ["prepare", "train", "pretrain", "finetune", "evaluate", "average", "predict"]
)
def test_two_at_once(name: str, base: Path, tmp_path: Path, record_property: Any) -> None:
    """One works, and the other waits or says who does; both together leave what one leaves."""
    words = COMMANDS[name]
    whole, both = (place(base, tmp_path / each) for each in ("whole", "both"))
    done(words, whole)
    processes = [start(words, both), start(words, both)]
    said = [process.communicate()[0] for process in processes]
    status = [process.returncode for process in processes]
    assert 0 in status, said
    for code, text in zip(status, said, strict=True):
        assert code == 0 or "is at work on it; wait for its end" in text, text[-2000:]
    record_property("hostile", 1)
    done(words, both)
    assert_same(whole, both)


def test_the_same_command_gives_the_same_bytes(base: Path, tmp_path: Path) -> None:
    """But for readings of the clock: everything else in the file is compared."""
    folders = [place(base, tmp_path / each) for each in ("one", "two")]
    for folder in folders:
        done(TRAIN, folder)
    one, two = (state(folder / "run") for folder in folders)
    for each in (one, two):
        del each["extra_state"]["previous_training_time"]
        for meters in each["extra_state"]["metrics"].values():
            meters[:] = [meter for meter in meters if not meter[2].startswith(("Stop", "Time"))]
    assert same(one, two)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[int]:
    """Room for ``size`` bytes in a folder: a disk of its own for root, else a limit of each file,
    which is yielded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield size
        return
    try:
        yield 0
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# Command, folder with little room, bytes, and what the one line must say.
FULL = {
    "prepare": (COMMANDS["prepare"], "made", 60_000, "made/"),
    "train": (TRAIN, "run", 9_000_000, "no space is left for run/checkpoint"),
    "decoding": (COMMANDS["evaluate"], "trained/decoded", 4096, "trained/decoded"),
    "scoring": (f"{COMMANDS['evaluate']} --results rows", "rows", 4096, "rows"),
    "average": ("average --last 2 --dir trained --out out/mean.pt", "out", 4_000_000, "mean.pt"),
}


@pytest.mark.parametrize("name", FULL)
def test_a_full_disk_is_said_and_loses_nothing(
    name: str, base: Path, tmp_path: Path, record_property: Any
) -> None:
    words, folder, size, what = FULL[name]
    full = place(base, tmp_path / "full")
    with small_disk(full / folder, size) as limit:
        status, said = run(words, full, limit)
        last = said.strip().split("\n")[-1]
        assert status != 0, said
        assert last.startswith("error: "), said
        assert what in last, last
        assert "make room and run again" in last, last
        assert "Traceback" not in said
    record_property("hostile", 1)
    whole = place(base, tmp_path / "whole")
    done(words, whole)
    done(words, full)
    assert_same(whole, full)
