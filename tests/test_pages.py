"""The pages lead somewhere, and the README stays a page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from diet_mt.cli.main import COMMANDS, GROUPS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "user_dir_readme.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "results").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_the_readme_is_a_page_that_names_every_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split("\n")) <= 121
    # A comment, such as the command of a table, is not shown.
    assert max(len(line) for line in text.split("\n") if not line.startswith("<!--")) <= 180
    names = {name.split(" ")[0] for name in COMMANDS} | {*GROUPS}
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_example_of_the_readme_needs_no_fairseq() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    example += "import sys; print(tuple(out.shape), 'fairseq' in sys.modules)"
    command = [sys.executable, "-c", example]
    found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert found.stdout == "(2, 8, 50, 64) False\n"
