"""Sections to draw, and a browser to look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.evaluation.groups import group
from diet_mt.evaluation.records import Result
from diet_mt.leaderboard.page import page
from diet_mt.leaderboard.standings import Section, section_of

from ..evaluation.rows import seeds_of
from .browser import Browser, find_chromium
from .made_up import comparisons, results


def sections_of(rows: list[Result]) -> list[Section]:
    """Sections without filters or p-values."""
    return [section_of(each, {}) for each in group(rows)]


@pytest.fixture(scope="session")
def full() -> list[Section]:
    """Four directions, several seeds, p-values, figures of the paper: all there can be."""
    known = {comparison.key: comparison for comparison in comparisons(results())}
    return [section_of(each, known) for each in group(results())]


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


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium without a window, one for all tests."""
    program = find_chromium()
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium, or set CHROMIUM")
    with Browser(program, tmp_path_factory.mktemp("chromium")) as running:
        yield running
