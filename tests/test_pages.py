"""The pages lead somewhere, and the README names every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diet_mt.cli.main import COMMANDS, GROUPS

from .commands.runner import ROOT

PAGES = [ROOT / "README.md", ROOT / "user_dir_readme.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "results").rglob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_modules_and_tests_exist(page: Path) -> None:
    files = re.findall(r"\b((?:tests|diet_mt)/[\w/]+\.py)\b", page.read_text(encoding="utf-8"))
    new = {"diet_mt/positions/tisa.py"}  # written by the reader of adding-an-encoding.md
    assert [file for file in files if not (ROOT / file).exists() and file not in new] == []


def test_the_readme_names_every_command() -> None:
    names = {name.split(" ")[0] for name in COMMANDS} | {*GROUPS}
    assert [name for name in names if f"`{name}`" not in README] == []
