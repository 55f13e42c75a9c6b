"""Every shell script is clean: shellcheck, strict mode, a header that says what it is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (".ci", "config", "data-prep", "scripts", "tests")


def _shell_files() -> list[Path]:
    """Files named *.sh, and those without a suffix whose first line calls a shell."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix == ".sh" or (
                path.suffix == "" and path.is_file() and _calls_shell(path)
            ):
                found.append(path)
    return found


def _calls_shell(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline()
    return first.startswith(b"#!") and first.rstrip().endswith(b"sh")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


SCRIPTS = _shell_files()
# Sourced by the others, whose settings they take.
RUN = [path for path in SCRIPTS if path.read_bytes().startswith(b"#!")]


def _shellcheck() -> str | None:
    # The environment's own first: it need not be on the PATH.
    beside = Path(sys.executable).parent / "shellcheck"
    return str(beside) if beside.exists() else shutil.which("shellcheck")


def test_the_scripts_are_found() -> None:
    assert {"scripts/setup.sh", ".ci/run"} <= {_name(path) for path in RUN}


@pytest.mark.skipif(_shellcheck() is None, reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say() -> None:
    # -x: follow what a script sources, named as seen from the project's folder.
    command = [str(_shellcheck()), "-x", *map(_name, SCRIPTS)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_script_says_what_it_is_and_stops_at_the_first_fault() -> None:
    for path in RUN:
        lines = path.read_text(encoding="utf-8").split("\n")
        assert lines[0] == "#!/usr/bin/env bash", path
        assert lines[1].startswith("# "), path
        code = next(line for line in lines if line and not line.startswith("#"))
        assert code == "set -euo pipefail", f"the first command of {path}: set -euo pipefail"


def test_help_is_the_first_thing_a_script_looks_at() -> None:
    """It is not run here: one that did not would install, download or train."""
    for path in [each for each in RUN if each.parent.name == "scripts"]:
        lines = path.read_text(encoding="utf-8").split("\n")
        code = [line for line in lines if line and not line.startswith("#")]
        assert code[1].startswith('case " $* " in'), path
        assert re.search(r"""--help["\s*]*\) sed .* "\$0"; exit ;;""", " ".join(code[1:3])), path
