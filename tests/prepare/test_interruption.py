"""SIGKILL in the middle of every stage, and a second run: as if nothing had happened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from diet_mt.system import engine

from ..processes import is_alive, wait_until
from .conftest import of_wmt18
from .running import killed, only_error, prepare, stages_of, texts
from .test_corpora import STAGES

pytestmark = pytest.mark.hostile

# Where each stage is killed: once it is about to do this. What it has made by then stays.
POINTS = {
    "extracted": ("os.rename", "extracted.part/commoncrawl.PAIR.en.part"),
    "raw": ("os.rename", "raw.part/test.en.part"),
    "clean": ("os.rename", "clean.part/train.en.part"),
    "tok": ("os.rename", "tok.part/train.en.part"),
    "bpe.codes": ("os.rename", "bpe.codes.part.part"),
    "bpe": ("os.rename", "bpe.part/valid.en.part"),
    "spm.model": ("os.rename", "spm.model.part.part"),
    "spm": ("os.rename", "spm.part/train.en.part"),
    "bin": ("open", "bin.part/train.PAIR.en.bin"),
}


@pytest.mark.parametrize(("pair", "kind"), [("de-en", "bpe"), ("cs-en", "spm")])
def test_every_stage_killed_and_continued(
    pair: str, kind: str, archives: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    out = tmp_path / "out"
    words = of_wmt18(pair, archives, out, "--subwords", kind, "--from", archives)
    printed = ""
    for number, stage in enumerate(STAGES[kind]):
        event, end = POINTS[stage]
        printed += killed(event, end.replace("PAIR", pair), *words)
        assert not (out / stage).exists()
        assert printed.count("done before") >= number - 1
    prepare(*words).ok()
    assert stages_of(out) == STAGES[kind]
    # Made without a pause, and by two processes: their number must not matter, either.
    whole = request.getfixturevalue("downloaded" if kind == "bpe" else "offline")
    assert texts(out) == texts(whole)
    assert not list(out.rglob("*.part"))
    # Files that were whole are not made again.
    for name in ("train.de", "valid.de") if kind == "bpe" else ("train.cs", "test.cs"):
        assert f"   {name}: done before" in printed


# Prepares the demo by two processes until it is to binarize; what it starts then only sleeps.
PROGRAM = """
import sys, time
from diet_mt.cli.main import main
from diet_mt.corpora import binarized

binarized.python_module = lambda *words: [
    sys.executable, "-m", "diet_mt.system.process", "sleeper"
]
sys.exit(main(sys.argv[1:]))
"""
SLEEPER = """
import os, time
child = os.fork()
if child:
    open("begun.part", "w").write(f"{os.getpid()} {child}")
    os.rename("begun.part", "begun")
time.sleep(60)
"""


def test_one_run_at_a_time_and_none_of_it_outlives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the main process is killed: what it started must not go on beside the next run."""
    monkeypatch.setattr(engine, "_LEFTOVERS_S", 0.3)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    words = ["demo", "--out", "out", "--train-pairs", "20", "--valid-pairs", "9", "--test-pairs"]
    words += ["9", "--bpe-merges", "20", "--workers", "2"]
    first = subprocess.Popen(
        [sys.executable, "program.py", "prepare", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, "."])},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until((tmp_path / "begun").exists)
        words[2] = str(tmp_path / "out")
        second = prepare(*words)
        assert f"{tmp_path}/out: " in only_error(second)
    finally:
        first.kill()
        first.communicate()
    started = [int(number) for number in (tmp_path / "begun").read_text().split()]
    assert len(started) == 2
    wait_until(lambda: not any(map(is_alive, started)))
    prepare(*words).ok()
