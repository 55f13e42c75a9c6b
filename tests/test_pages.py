"""Links, commands and options of the pages and scripts."""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import subprocess
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from fairseq import options
from fairseq.dataclass.configs import FairseqConfig
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY

from diet_mt.cli.main import COMMANDS, parser_of
from diet_mt.cli.sweep import check_commands, subcommand
from diet_mt.evaluation.fairseq_options import import_fairseq, read_options
from diet_mt.evaluation.generation import check_options

from .commands.runner import ROOT
from .processes import called

GUIDES = [ROOT / "README.md", ROOT / "user_dir_readme.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*GUIDES, *sorted((ROOT / "results").rglob("*.md"))]
SCRIPTS = [*sorted((ROOT / "data-prep").glob("*.sh")), *sorted((ROOT / "scripts").glob("*.sh"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_named_modules_are_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s]+)", text)
    files = [page.parent / link for link in links if "://" not in link]
    files += [ROOT / name for name in re.findall(r"\b((?:tests|diet_mt)/[\w/]+\.py)\b", text)]
    new = ROOT / "diet_mt/positions/tisa.py"  # written by the reader of adding-an-encoding.md
    assert [file for file in files if not file.exists() and file != new] == []


# Programs in whose place a stand-in stores the words, and makes the folders that a training would.
PROGRAMS = {
    "fairseq-train": options.get_training_parser,
    "fairseq-generate": options.get_generation_parser,
    "fairseq-interactive": options.get_interactive_generation_parser,
    "fairseq-validate": options.get_validation_parser,
}
STAND_IN = """\
#!/bin/bash
printf -v line '%s\\037' "${0##*/}" "$@"
echo "$line" >>"$RECORD"  # at once, since others may write, too
for word in "$@"; do
  case $word in checkpoints=*) mkdir -p "${word#*=}"/{diet_rel,shaw.published}.1 ;; esac
done
"""
# What the user adds.
ARGUMENTS = {
    "prepare-bitext": "--from text",
    "prepare-glue": "--from glue --vocab bin",
    "prepare-mlm": "--train text --valid other",
    "prepare-qa": "--train text --valid other --vocab bin",
    "prepare-wmt18": "cs-en --from archives",
    "prepare-xnli": "--from xnli --mnli glue --vocab bin",
    "gpu-evidence": "100 out",
}
# Words that stand for others in a page.
PLACES = {"ARCH": "diet_rel_tiny", "SEED": "1", "tisa_tiny": "diet_rel_tiny"}
_BLOCK = re.compile(r"^<pre>\n(.*?)^</pre>|^```\w*\n(.*?)^```|((?:^ {4}[^\n]*\n)+)", re.M | re.S)
_COMMAND = re.compile(r"^ *(?:srun )?(diet-mt|fairseq-[a-z-]+) ", re.M)


class Recorded:
    """Runs shell scripts in an empty folder, with stand-ins for our commands and fairseq's."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs = folder / "work", folder / "bin"
        self.record = folder / "record"
        self.programs.mkdir()
        shutil.copytree(ROOT / "results", self.folder / "results", ignore=lambda folder, names: [
            name for name in names if not (Path(folder) / name).is_dir()
        ])  # fmt: skip
        shutil.copy(ROOT / "README.md", self.folder)
        for folder in ("", "search", "short", "joined", "long", "int8"):
            page = Path("results", folder, "README.md")
            shutil.copy(ROOT / page, self.folder / page)
        ours = ("fairseq-hydra-train", "diet-mt", "python", "python3", "nvidia-smi")
        for name in (*PROGRAMS, *ours):
            (self.programs / name).write_text(STAND_IN, encoding="utf-8")
            (self.programs / name).chmod(0o755)

    def __call__(self, *words: str, path: str = "", ends: bool = True) -> list[tuple[str, ...]]:
        """The commands, in their order. ``path``: where other programs are."""
        self.record.write_text("", encoding="utf-8")
        env = {"RECORD": str(self.record), "UPDATES": "9"}
        env["PATH"] = f"{self.programs}:{path or self.programs}"
        done = subprocess.run(
            ["/bin/bash", *words], cwd=self.folder, env=env, capture_output=True, text=True
        )
        assert not ends or done.returncode == 0, done.stdout + done.stderr
        lines = self.record.read_text(encoding="utf-8").splitlines()
        every = [tuple(line.split("\037")[:-1]) for line in lines]
        return [
            ("diet-mt", *words[3:]) if words[1:3] == ("-m", "diet_mt") else words
            for words in every
            if words[0] in ("diet-mt", "fairseq-hydra-train", *PROGRAMS)
            or words[1:3] == ("-m", "diet_mt")
        ]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    import_fairseq()
    monkeypatch.chdir(tmp_path)  # without data
    return Recorded(tmp_path)


def understood(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Parses a command as its program does, with the options that are passed on to fairseq."""
    words = tuple(PLACES.get(word, word) for word in words if word != "...")
    if words[0] == "diet-mt":
        check_commands([words])
        name, given = subcommand(words)
        if name in ("train", "pretrain", "finetune"):
            assert called(name, *given, "--dry-run") == 0, capsys.readouterr().err
        elif name == "evaluate":
            check_options(parser_of(name).parse_args(given).passed)
        elif name == "sweep" and not given[0].endswith(".yaml"):
            with patch("diet_mt.cli.sweep.planned", return_value=[]):  # without dry runs in it
                assert called(name, *given, "--dry-run") == 0, capsys.readouterr().err
        elif name.startswith("prepare "):  # up to the files that are missing
            called(*name.split(), *given, "--dry-run")
            assert "error: --" not in capsys.readouterr().err
    elif words[0] == "fairseq-hydra-train":
        for word in words[5:]:  # behind --config-dir and --config-name
            section, name = word.partition("=")[0].split(".")
            (field,) = (field for field in fields(FairseqConfig) if field.name == section)
            kind: Any = field.type
            assert kind is Any or name in kind.__dataclass_fields__
    else:
        at = words.index("--user-dir") + 1
        given = *words[1:at], str(ROOT / words[at]), *words[at + 1 :]
        read_options(PROGRAMS[words[0]](), given)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_command_of_a_script(
    script: Path, recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script.read_text(encoding="utf-8")
    if not re.search(r"diet-mt |-m diet_mt", text):
        pytest.skip("no command of ours")
    given = ARGUMENTS.get(script.stem, "").split()
    commands = recorded(str(script), *given, path=os.environ["PATH"])
    assert commands
    for words in commands:
        understood(words, capsys)
    if "exec diet-mt" in text:
        ((_, *words),) = recorded(str(script), "--dry-run", path=os.environ["PATH"])
        capsys.readouterr()
        some = "seed=1,lr=1e-5,epochs=5" if script.stem == "glue" else "seed=1"
        assert called(*words, "--runs", some) == 0
        planned = capsys.readouterr().out
        assert planned.count("#   fairseq-train ") == planned.count("\n# run ") > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page(
    page: Path, recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        block = html.unescape(next(filter(None, match.groups()))).replace("\\\n", " ")
        if not (expected := len(_COMMAND.findall(block))):
            continue
        for name in re.findall(r" < (\S+)", block):
            (recorded.folder / name).touch()
        commands = recorded("-c", block, ends=False)
        assert len(commands) >= expected, block
        for words in commands:
            understood(words, capsys)


# Of pip, setup.py, pytest, git, tar, timeout, nvidia-smi, tensorboard and hydra.
OTHERS = {
    "--no-deps", "--no-build-isolation", "--requirement", "--editable", "--inplace", "--version",
    "--disable-pip-version-check", "--dist", "--junitxml", "--collect-only", "--write-golden",
    "--verify", "--quiet", "--porcelain", "--short", "--stat", "--sort", "--mtime", "--owner",
    "--group", "--numeric-owner", "--mode", "--skip-old-files", "--files-from", "--kill-after",
    "--query-gpu", "--logdir", "--config-dir", "--config-name",
    "--post-save-script",  # of fairseq-fixed only
}  # fmt: skip


@cache
def every_option() -> set[str]:
    """Options of diet-mt, and of fairseq with all of its parts and ours."""
    import_fairseq()
    parsers = [parser_of(name) for name in COMMANDS] + [parser() for parser in PROGRAMS.values()]
    kinds = [*TASK_REGISTRY.values(), *MODEL_REGISTRY.values()]
    kinds += [kind for registry in REGISTRIES.values() for kind in registry["registry"].values()]
    for kind in kinds:
        parsers.append(parser := argparse.ArgumentParser(conflict_handler="resolve"))
        if hasattr(kind, "add_args"):
            kind.add_args(parser)
        elif part := getattr(kind, "__dataclass", None):
            gen_parser_from_dataclass(parser, part())
    return {option for parser in parsers for option in parser._option_string_actions}


@pytest.mark.parametrize("file", [*GUIDES, *SCRIPTS], ids=lambda file: file.name)
def test_every_option_exists(file: Path) -> None:
    """Also in sentences and comments, as an option of some command."""
    text = file.read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*\b(?!-)", text))
    assert named - OTHERS - every_option() == set()
