"""``pip install .`` makes a package that serves as user dir and runs without the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .runner import PLUGIN, ROOT, command, run_alone, run_installed
from .workshop import SEARCH, Workshop, texts

# What is no code, but needed: styles and scripts of pages, data, a mark for type checkers.
SHIPPED = (".py", ".bz2", ".css", ".html", ".js", ".json", ".typed", ".yaml")
SHARED = ("config", "data-prep", "scripts")
NEEDED = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "diet_mt", *SHARED)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed package's folder, made from a copy: building leaves files in its folder."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in NEEDED:
        if (ROOT / name).is_dir():
            junk = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=junk)
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, source / name)
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed, and tests do not fetch it")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", target, source]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return target / "diet_mt"


def test_every_module_is_installed(installed: Path) -> None:
    def contents(folder: Path) -> set[str]:
        files = [path for path in folder.rglob("*") if path.suffix in SHIPPED]
        paths = {path.relative_to(folder) for path in files}
        return {str(path) for path in paths if path.parts[0] != "share"}

    assert contents(installed) == contents(PLUGIN)


def test_recipes_and_sweep_files_are_installed(installed: Path) -> None:
    """As they are, and as executable as they are."""
    for ours in [path for folder in SHARED for path in (ROOT / folder).rglob("*.*")]:
        theirs = installed / "share" / ours.relative_to(ROOT)
        assert theirs.read_bytes() == ours.read_bytes()
        assert os.access(theirs, os.X_OK) == os.access(ours, os.X_OK)


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    """Without a checkout it knows its version, and loads what its commands need."""
    script = installed.parent / "bin" / "diet-mt"
    cases = ((["--version"], "diet-mt "), (["verify", "--help"], "usage: diet-mt verify"))
    for argv, start in cases:
        program = [sys.executable, str(script)]
        site = {"PYTHONPATH": str(installed.parent)}
        done = run_alone(program, command("diet-mt", *argv), cwd=tmp_path, **site)
        assert (done.status, done.stderr) == (0, "")
        assert done.stdout.startswith(start)


def test_the_installed_package_is_a_user_dir(
    workshop: Workshop, installed: Path, tmp_path: Path
) -> None:
    path = ("--path", workshop.checkpoint("diet-rel"), *SEARCH)
    done = run_installed("generate", workshop.bin, *path, "--user-dir", installed, cwd=tmp_path)
    assert texts(done.ok().stdout) == texts(workshop.decoded("diet-rel"))
