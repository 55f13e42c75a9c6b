"""Every shell script is clean: shellcheck, strict mode, a header."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (".ci", "config", "data-prep", "scripts", "tests")


def _is_shell(path: Path) -> bool:
    """Named *.sh, or without a suffix and with a first line that calls a shell."""
    if path.suffix or not path.is_file():
        return path.suffix == ".sh"
    first = path.read_bytes().split(b"\n", 1)[0]
    return first.startswith(b"#!") and first.rstrip().endswith(b"sh")


SCRIPTS = [path for name in FOLDERS for path in sorted((ROOT / name).rglob("*")) if _is_shell(path)]
# The environment's own first: it need not be on the PATH.
_OWN = Path(sys.executable).parent / "shellcheck"
SHELLCHECK = str(_OWN) if _OWN.exists() else shutil.which("shellcheck")


@pytest.mark.skipif(SHELLCHECK is None, reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say() -> None:
    # -x: follow what a script sources, named as seen from the project's folder.
    names = [str(path.relative_to(ROOT)) for path in SCRIPTS]
    command = [str(SHELLCHECK), "-x", *names]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_script_has_a_header_and_stops_at_the_first_fault() -> None:
    # Others are sourced, with the settings of the script that does so.
    run = [path for path in SCRIPTS if path.read_bytes().startswith(b"#!")]
    assert run
    for path in run:
        lines = path.read_text(encoding="utf-8").split("\n")
        assert lines[:1] == ["#!/usr/bin/env bash"], path
        assert lines[1].startswith("# "), path
        code = next(line for line in lines if line and not line.startswith("#"))
        assert code == "set -euo pipefail", path
