"""SIGKILL in the middle of every stage, and a second run: as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .runner import ROOT, killed_at, prepare, run, stages_of, texts
from .test_wmt18 import STAGES

# Where each stage is killed: once it is about to do this. What it has made by then stays.
POINTS = {
    "archives": ("os.rename", "training-parallel-commoncrawl.tgz.verified.part"),
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
    out, arguments = tmp_path / "out", [pair, "--subwords", kind, "--archives", str(archives)]
    for number, stage in enumerate(STAGES[kind]):
        event, end = POINTS[stage]
        killed = prepare(archives, out, *arguments, **killed_at(event, end.replace("PAIR", pair)))
        assert killed.returncode == -signal.SIGKILL, (stage, killed.stderr)
        assert not (out / stage).exists()
        assert killed.stderr.count("done before") >= number - 1
    last = prepare(archives, out, *arguments)
    assert last.returncode == 0, last.stderr
    assert stages_of(out) == STAGES[kind]
    # Made without a pause, and by two processes: their number must not matter, either.
    whole = request.getfixturevalue("downloaded" if kind == "bpe" else "offline")
    assert texts(out) == texts(whole)
    assert not list(out.rglob("*.part"))


def test_files_that_are_whole_are_not_made_again(archives: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["de-en", "--archives", str(archives)]
    for end in ("extracted.part/commoncrawl.de-en.en.part", "tok.part/test.en.part"):
        prepare(archives, out, *arguments, **killed_at("os.rename", end))
    result = prepare(archives, out, *arguments, **killed_at("open", "bpe.codes.part.part"))
    for name in ("train.de", "valid.de", "test1.de", "train.en", "valid.en"):
        assert f"   {name}: done before" in result.stderr
    assert "   test.en: done before" not in result.stderr
    assert "   test.en: 7 lines" in result.stderr


def test_what_a_killed_recipe_started_ends_or_is_waited_for(original: Path, tmp_path: Path) -> None:
    """Only the shell is killed; its stage must not go on beside that of the next run."""
    out, stop = tmp_path / "out", tmp_path / "python"
    stop.write_text(
        "#!/usr/bin/env bash\n"
        f'case " $* " in *" moses "*) touch "{tmp_path}/reached"; sleep 2 ;; esac\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    stop.chmod(0o755)
    given = {"MULTI30K_DIR": original, "MULTI30K_MANIFEST": original / "manifest", "OUT": out}
    environment = {**os.environ, **{key: str(value) for key, value in given.items()}}
    environment |= {"WORKERS": "1", "BPE_MERGES": "150"}
    command = ["bash", str(ROOT / "data-prep" / "prepare-multi30k.sh")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    first = subprocess.Popen(command, env={**environment, "PYTHON": str(stop)}, **quiet)  # type: ignore[call-overload]
    deadline = time.monotonic() + 60
    while not (tmp_path / "reached").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    first.kill()
    first.wait()
    second = run("multi30k", **given, LOCK_WAIT=60, **killed_at("os.rename", "bpe.codes.part.part"))
    assert "waiting for another run, or what is left of one, to end" in second.stderr
    assert "== tok: 300 + 21 + 13 pairs" in second.stderr
