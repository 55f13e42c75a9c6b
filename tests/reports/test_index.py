"""docs/reports.md has a row for every report of this folder."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reports.md"


def test_every_report_has_a_row() -> None:
    rows = {
        each
        for line in PAGE.read_text(encoding="utf-8").split("\n")
        if line.startswith("| ")
        for each in re.findall(r"[\w/-]+ #\d+", line.split("|")[1])
    }
    cited = set()
    for file in HERE.glob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        cited |= set(re.findall(r"[\w/-]+ #\d+", text))
        cited |= {f"{name} #{n}" for name, n in re.findall(r'id="(.+?)-(\d+)-[^"]+"', text)}
    assert cited - rows == set()
    assert len(cited) > 60
