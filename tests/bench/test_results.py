"""Tables of measurements in results/ are what the scripts beside their rows make of these."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from diet_mt.errors import UserError

from ..commands.runner import ROOT

RESULTS = ROOT / "results"
SCRIPTS = sorted([*RESULTS.glob("*/table.py"), *RESULTS.glob("*/measure.py")])
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)


def page_of(script: Path) -> Callable[[Sequence[Path]], str]:
    page: Callable[[Sequence[Path]], str] = runpy.run_path(str(script))["page"]
    return page


@each_script
def test_a_page_is_made_of_its_rows(script: Path) -> None:
    rows = sorted(script.parent.glob("*.jsonl"))
    assert page_of(script)(rows) == script.parent.with_suffix(".md").read_text(encoding="utf-8")


@each_script
@pytest.mark.parametrize("text", ["", '{"median": 1}\n', "[" * 100_000])
def test_other_rows_are_refused(script: Path, text: str, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"r\.jsonl"):
        page_of(script)([tmp_path / "r.jsonl"])
