"""Sections to draw, and a browser to look at them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from diet_mt.evaluation.comparisons import compare
from diet_mt.evaluation.groups import group
from diet_mt.evaluation.records import Result, read_results
from diet_mt.evaluation.sentences import keep_sentences, read_sentences
from diet_mt.leaderboard.beside import read_beside
from diet_mt.leaderboard.page import page
from diet_mt.leaderboard.standings import Section, section_of

from ..evaluation.rows import seeds_of
from .browsing import opened
from .made_up import comparisons, results
from .said import write_said

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SPEEDS = "results/benchmark.md"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def sections_of(rows: list[Result]) -> list[Section]:
    """Sections without filters or p-values."""
    return [section_of(each, {}, speeds=SPEEDS) for each in group(rows)]


@pytest.fixture(scope="session")
def full() -> list[Section]:
    """Four directions, several seeds, p-values, figures of the paper: all there can be."""
    known = comparisons(results())
    return [section_of(each, known, speeds=SPEEDS) for each in group(results())]


@pytest.fixture(scope="session")
def plain() -> Section:
    """Rows with little in them, without p-values."""
    rows = [*seeds_of("sinusoidal", {1: 33.0, 2: 34.0}), *seeds_of("diet_rel", {2: 35.5, 1: 34.0})]
    (section,) = sections_of([*rows, *seeds_of("none", {1: 27.0})])
    return section


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory, full: list[Section]) -> Path:
    """The page of ``full``."""
    file = tmp_path_factory.mktemp("page") / "leaderboard.html"
    file.write_text(page(full), encoding="utf-8")
    return file


def page_of_said(folder: Path, systems: int = 0) -> str:
    """The page of rows with hypotheses and references, written to ``folder``."""
    file, references = write_said(folder, systems)
    keep_sentences([file], [references])
    groups = group(read_results(file))
    known = compare(groups, read_sentences([file])) if not systems else {}
    sections = [section_of(each, known) for each in groups]
    return page(sections, beside=read_beside([file]))


@pytest.fixture(scope="session")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows, their hypotheses and references, and ``page.html``."""
    folder = tmp_path_factory.mktemp("said")
    (folder / "page.html").write_text(page_of_said(folder), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def said_page(said: Path) -> str:
    return (said / "page.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window, one for all tests; the variable CHROMIUM names another one."""
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


@pytest.fixture
def desk(browser: Browser, said: Path) -> Iterator[Page]:
    """The page with sentences."""
    with opened(browser, said / "page.html") as tab:
        yield tab
