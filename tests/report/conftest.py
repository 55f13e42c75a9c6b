"""Fixtures: a page of toy results, and a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from diet_mt.report.page import page
from diet_mt.report.sections import read_sections

from ..evaluation.rows import task_row
from .toy import write_toy

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows, hypotheses, counts, references, and ``page.html``."""
    folder = tmp_path_factory.mktemp("toy")
    file, _ = write_toy(folder)
    sections, _, counts = read_sections([file])
    html = page(sections, [task_row()], counts, [folder])
    (folder / "page.html").write_text(html, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium; the environment variable CHROMIUM is the path of its program."""
    library = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'"
    )
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium, or set CHROMIUM")
    with library.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()
