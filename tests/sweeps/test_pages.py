"""The pages of scripts/: what a sweep does, by hand; and results/ made again from its rows."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from diet_mt.cli.main import COMMANDS, parser_of
from diet_mt.recipes import read
from diet_mt.sweeps.sweep import sweep_of
from diet_mt.sweeps.variables import Value

from ..commands.runner import ROOT

# Page -> sweep, and what the page has in the place of values that only the user knows.
PAGES: dict[str, tuple[str, dict[str, Value]]] = {
    "demo": ("demo", {}),
    "compare-multi30k": ("multi30k", {}),
    "table4": ("table4", {}),
    "glue": ("glue", {"from": "glue"}),
    "xnli": ("xnli", {"from": "xnli", "mnli": "glue", "languages": ["en", "de", "zh"]}),
    "qa": (
        "qa",
        {
            "train": "train-v1.1.json",
            "valid": "dev-v1.1.json",
            "xquad": "xquad",
            "tests": ["xquad_de", "xquad_zh"],
        },
    ),
}
# What a page shows although it is the default, or does without.
SHOWN = {"--beam", "10", "--lenpen", "0.6", "--checkpoint", "checkpoint_best.pt"}


def run(name: str, *words: str, cwd: Path, stub: str) -> subprocess.CompletedProcess[str]:
    """A page, with the shell script ``stub`` for ``diet-mt``."""
    (cwd / "diet-mt").write_text(f"#!/bin/sh\n{stub}")
    (cwd / "diet-mt").chmod(0o755)
    return subprocess.run(
        [ROOT / "scripts" / f"{name}.sh", *words],
        cwd=cwd,
        env={**os.environ, "PATH": f"{cwd}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def page(name: str, *words: str, cwd: Path) -> tuple[str, list[list[str]]]:
    """What a page prints, and the words of the commands that it runs: a stand-in does nothing."""
    done = run(name, *words, cwd=cwd, stub='printf "%s\\t" "$@" >>commands\necho >>commands\n')
    assert done.returncode == 0, done.stderr
    kept = cwd / "commands"
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    return done.stdout, [line.rstrip("\t").split("\t") for line in lines]


def plain(words: list[str]) -> list[str]:
    """In any order, ``--name=value`` as two words."""
    parts = [part for word in words for part in word.split("=") if word[:2] == "--" or "=" in word]
    return sorted({*parts, *(word for word in words if "=" not in word)} - SHOWN)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_what_its_sweep_does(name: str, tmp_path: Path) -> None:
    sweep, values = PAGES[name]
    wanted = [plain(list(words[1:])) for words in sweep_of(read(sweep), sweep, values).commands
              if words[0] == "diet-mt"]  # fmt: skip
    _, commands = page(name, cwd=tmp_path)
    assert {words[0] for words in commands} >= {"prepare", "leaderboard"}
    for words in commands:
        # Tables are of fewer runs.
        assert words[0] in ("compare", "leaderboard") or plain(words) in wanted, words


@pytest.mark.parametrize("name", PAGES)
def test_options_go_to_the_training(name: str, tmp_path: Path) -> None:
    _, commands = page(name, "--dropout", "0.2 3", cwd=tmp_path)
    for words in commands:
        assert (words[-2:] == ["--dropout", "0.2 3"]) == (words[0] in ("train", "finetune"))


@pytest.mark.parametrize("name", PAGES)
def test_a_dry_run_is_that_of_the_sweep(name: str, tmp_path: Path) -> None:
    _, commands = page(name, "--dropout", "0.2", "--dry-run", cwd=tmp_path)
    assert len(commands) == 1
    assert commands[0][:2] == ["sweep", PAGES[name][0]]
    assert commands[0][-1] == "--dry-run"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_of_a_page_is_its_header(name: str, option: str, tmp_path: Path) -> None:
    said, commands = page(name, "--dropout", "0.2", option, cwd=tmp_path)
    assert commands == []
    assert f"diet-mt sweep {PAGES[name][0]}" in said
    for word in ("Makes ", "From ", f"Example  scripts/{name}.sh", "Takes ", "Licence "):
        assert f"\n{word}" in said
    assert "set -e" not in said


def test_results_sh_makes_every_table_and_picture_of_rows(tmp_path: Path) -> None:
    # Not made of rows.
    others = re.compile(r"results/(figures\.md|parts\.md|data-prep/|qa/)")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "results"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    if listed == [""]:
        pytest.skip("no checkout")
    kept = [Path(name) for name in listed if name]
    wanted = {"README.md"}
    for path in kept:
        if path.suffix in (".md", ".png", ".svg", ".html"):
            wanted |= set() if others.match(str(path)) else {str(path)}
        else:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()
    (tmp_path / "README.md").write_bytes((ROOT / "README.md").read_bytes())
    _, commands = page("results", cwd=tmp_path)
    made = {str(path.relative_to(tmp_path)) for path in (tmp_path / "results").rglob("*.md")}
    for words in commands:
        name = next(name for name in sorted(COMMANDS, key=len, reverse=True)
                    if words[: len(name.split())] == name.split())  # fmt: skip
        parser_of(name).parse_args(words[len(name.split()) :])
        for option, value in pairwise(words):
            if option in ("--readme", "--out") and name != "figures":
                made.add(f"{value}.png" if name == "bench curves" else value)
        if name == "figures":  # its pictures, in the folder that it is given
            (folder,) = (Path(value) for option, value in pairwise(words) if option == "--out")
            made |= {
                path for path in wanted if path.endswith(".png") and Path(path).parent == folder
            }
    assert made == wanted


def test_a_fault_leaves_the_files_of_results_as_they_are(tmp_path: Path) -> None:
    kept = tmp_path / "results" / "benchmark.md"
    kept.parent.mkdir()
    kept.write_text("kept", encoding="utf-8")
    for folder in ("short", "joined", "figures/cs-en", "figures/mlm", "benchmark", "encoder_cost"):
        (tmp_path / "results" / folder).mkdir(parents=True)
    for folder in ("benchmark", "encoder_cost"):
        script = tmp_path / "results" / folder / "table.py"
        script.write_text("print('half'); raise SystemExit(1)", encoding="utf-8")
    done = run("results", cwd=tmp_path, stub="echo half\n")
    assert done.returncode == 1
    assert kept.read_text(encoding="utf-8") == "kept"
    assert (tmp_path / "results" / "joined" / "training.md").read_text(encoding="utf-8") == "half\n"
    assert (tmp_path / "results" / "lengths.md").read_text(encoding="utf-8") == "half\n"
    assert not (tmp_path / "results" / "encoder_cost.md").exists()


def test_results_sh_only_helps_where_it_is_asked(tmp_path: Path) -> None:
    said, commands = page("results", "--help", cwd=tmp_path)
    assert commands == []
    assert "Example  scripts/results.sh" in said


# For python -m diet_mt: a sweep leaves the folder of a training with the words that it had.
STANDS_IN = """shift 2
echo "$@" >>calls
while [ $# -gt 1 ]; do case $2 in checkpoints=*) folder=${2#checkpoints=} ;; esac; shift; done
for name in sinusoidal rotary diet_rel diet_abs shaw.published; do
  [ -z "${folder:-}" ] || { mkdir -p "$folder/$name.1" &&
    printf ' ups=9.00,\\n ups=9.00,\\n ups=2.50,\\n ups=9.00,\\n' >"$folder/$name.1/train.log"; }
done
"""


def test_the_gpu_run_decodes_what_its_sweep_does(tmp_path: Path) -> None:
    (tmp_path / "python").write_text(f"#!/bin/sh\n{STANDS_IN}", encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    done = subprocess.run(
        [ROOT / "scripts" / "gpu-evidence.sh", "1053", "out", "--dropout", "0.3"],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": str(tmp_path / "python"), "DECODING": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    # 2.5 updates a second, of 1,053 s and the 40 s that 100 of them should have taken, less 5 %.
    (trained,) = [line for line in calls if "--max-update,100," not in line and "sweep" in line]
    assert "--dropout,0.3,--max-update,2550" in trained

    def told(words: Sequence[str]) -> list[str]:
        """Training, test set, texts and options of the row, wherever the folders are."""
        names = {word.rpartition("/")[2].removesuffix(f".{words[4]}") for word in words}
        return sorted(names - {"base", "results"})

    sweep = sweep_of(read("mixed.base"), "mixed.base")
    wanted = [told(words[1:]) for words in sweep.commands if words[1] == "evaluate"]
    found = [told(line.split()) for line in calls if line.startswith("evaluate")]
    assert sorted(found) == sorted(wanted) != []
