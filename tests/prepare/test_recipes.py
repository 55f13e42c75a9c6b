"""The pages in data-prep/: plain commands, whose flags exist and say what is used."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from diet_mt.cli.main import COMMANDS

from .running import prepare

RECIPES = sorted((Path(__file__).resolve().parent.parent.parent / "data-prep").glob("*.sh"))
NAMES = [path.stem.removeprefix("prepare-") for path in RECIPES]
# What a user adds, on files of the test's own.
ADDED = {
    "multi30k": "--from {t} --manifest {t}/manifest",
    "newstest": "--from {t}",
    "office": "--from {t} --manifest {t}/manifest",
    "mixed": "--from {t}",
    "wmt18": "--from {t} --manifest {t}/manifest",
    "bitext": "--from {t}",
    "demo": "--train-pairs 40 --valid-pairs 9 --test-pairs 9 --bpe-merges 40 --workers 1",
    "mlm": "--train {t}/text --valid {t}/other",
    "glue": "--from {t} --vocab {v}",
    "xnli": "--from {t} --mnli {t} --vocab {v}",
    "qa": "--train {t}/text --valid {t}/other --vocab {v}",
}


def _run(recipe: Path, *words: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", str(recipe), *words], cwd=path, env=environment, text=True, capture_output=True
    )


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """A folder with a diet-mt that prints its words, one on a line."""
    program = tmp_path / "diet-mt"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o755)
    return tmp_path


def test_there_is_one_for_each_command() -> None:
    assert {f"prepare {name}" for name in NAMES} == {n for n in COMMANDS if n.startswith("prepare")}


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_help_is_that_of_the_command(recipe: Path, stub: Path) -> None:
    words = _run(recipe, "-h", path=stub).stdout.split("\n")[:-1]
    found = prepare(*words[1:])
    assert (found.status, found.err) == (0, "")
    for word in (f"diet-mt prepare {words[1]}", "akes ", "Licence: ", "--out FOLDER"):
        assert word in found.out


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_flags_are_those_of_the_command_and_can_be_added(
    recipe: Path, stub: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = recipe.stem.removeprefix("prepare-")
    added = ADDED[name].format(t=stub, v=vocabulary).split()
    words = _run(recipe, *added, path=stub).stdout.split("\n")[:-1]
    assert words[:2] == ["prepare", name]
    monkeypatch.chdir(stub)
    if name == "demo":
        for _ in range(2):
            said = prepare(*words[1:]).ok()
        assert said.count("done before") == 5
        return
    # The rest has no files here: all its flags are understood, and that is what is said.
    found = prepare(*words[1:], "--dry-run")
    for text in ("unknown", "unrecognized", "expected", "must be"):
        assert text not in found.err
    assert found.status == 2
