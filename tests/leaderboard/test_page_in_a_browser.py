"""The page on a phone and on a desk, light and dark, looked at by Chromium where there is one.

With SCREENSHOTS=DIR in the environment the pictures stay there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.leaderboard.standings import Section

from .browser import Browser, Tab

SCREENS = {"phone": (360, 740), "desktop": (1440, 900)}
TABLE = "document.querySelector('table')"
SYSTEMS = f"[...{TABLE}.tBodies[0].rows].map(row => row.cells[0].textContent)"
ORDER = f"[...{TABLE}.tHead.rows[0].cells].map(head => head.getAttribute('aria-sort'))"


def head(title: str, what: str = "button") -> str:
    """Selects a column's head in the first table by the order of the made-up board's columns."""
    titles = ["system", "BLEU", "±", "to sinusoidal", "p", "paper"]
    return f"table th:nth-child({titles.index(title) + 1}) {what}"


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    kept = Path(os.environ.get("SCREENSHOTS", tmp_path))
    kept.mkdir(parents=True, exist_ok=True)
    return kept


@pytest.fixture(scope="module", params=SCREENS)
def tab(request: pytest.FixtureRequest, browser: Browser, page_file: Path) -> Iterator[Tab]:
    width, height = SCREENS[request.param]
    with Tab(browser, page_file, width=width, height=height) as opened:
        yield opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_screenshots(
    browser: Browser, page_file: Path, shots: Path, screen: str, scheme: str
) -> None:
    width, height = SCREENS[screen]
    with Tab(browser, page_file, width=width, height=height, scheme=scheme) as tab:
        for name, whole in ((f"{screen}-{scheme}", False), (f"{screen}-{scheme}-whole", True)):
            data = tab.picture(shots / f"{name}.png", whole)
            assert data.startswith(b"\x89PNG")
            assert int.from_bytes(data[16:20], "big") == width
        paper, ink = tab.value(
            "(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))"
        )
        light, dark = (sum(map(int, colour[4:-1].split(", "))) for colour in (paper, ink))
        assert (light > dark) == (scheme == "light")
        assert tab.complaints == []


def test_the_page_is_no_wider_than_the_screen(tab: Tab) -> None:
    width, content = tab.value("[innerWidth, document.scrollingElement.scrollWidth]")
    assert width in (360, 1440)
    assert content <= width
    tab.value("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    assert tab.value("document.scrollingElement.scrollWidth") <= width


def test_what_is_wider_scrolls_in_its_own_frame(tab: Tab) -> None:
    frame = "document.querySelector('.frame')"
    inside, outside = tab.value(f"[{frame}.scrollWidth, {frame}.clientWidth]")
    assert inside > outside or tab.value("innerWidth") == 1440
    # The names stay in sight, and leave room for numbers.
    tab.value(f"{frame}.scrollLeft = 1000")
    left, right = tab.value(
        f"(box => [box.left, box.right])({TABLE}.tBodies[0].rows[0].cells[0]"
        ".getBoundingClientRect())"
    )
    assert left >= 0
    assert right < 0.55 * tab.value("innerWidth")
    tab.value(f"{frame}.scrollLeft = 0")


def test_the_picture_is_drawn(tab: Tab, full: list[Section]) -> None:
    """Every mark is on top where it says that it is, in a colour of its own."""
    found = tab.value(
        "[...document.querySelectorAll('.picture .mean')].map(mark => {"
        "mark.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const box = mark.getBoundingClientRect();"
        "const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);"
        "return [top === mark || top.classList.contains('seed')"
        " || !!top.closest('.published'), box.width, box.left, box.right,"
        " getComputedStyle(mark).fill]; })"
    )
    measured = [s for section in full for s in section.standings if s.line]
    assert len(found) == len(measured)
    width = tab.value("innerWidth")
    for on_top, size, left, right, fill in found:
        assert on_top
        assert size == pytest.approx(10, abs=0.01)
        assert 0 <= left < right <= width
        assert fill != tab.value("getComputedStyle(document.body).backgroundColor")


def test_letters_in_the_picture_do_not_overlap(tab: Tab) -> None:
    boxes = tab.value(
        "[...document.querySelectorAll('.picture')].map(picture =>"
        "[...picture.querySelectorAll('text')].map(text => {"
        "const box = text.getBoundingClientRect();"
        "return [box.left, box.top, box.right, box.bottom]; }))"
    )
    for picture in boxes:
        for number, one in enumerate(picture):
            for other in picture[:number]:
                beside = one[0] >= other[2] or other[0] >= one[2]
                above = one[1] >= other[3] - 1 or other[1] >= one[3] - 1
                assert beside or above


def test_a_click_sorts_and_another_turns_it_round(tab: Tab) -> None:
    before = tab.value(SYSTEMS)
    tab.click(head("system"))
    assert tab.value(SYSTEMS) == sorted(before)
    assert tab.value(ORDER)[0] == "ascending"
    tab.click(head("system"))
    assert tab.value(SYSTEMS) == sorted(before, reverse=True)
    assert tab.value(ORDER)[:2] == ["descending", None]
    tab.click(head("BLEU"))
    assert tab.value(SYSTEMS) == before
    assert tab.value(ORDER)[:2] == [None, "descending"]


def test_the_keyboard_sorts_and_empty_cells_stay_last(tab: Tab) -> None:
    tab.value(f"document.querySelector({head('paper')!r}).focus()")
    for best, order in (("shaw_base", "descending"), ("sinusoidal_base", "ascending")):
        tab.press_enter()
        systems = tab.value(SYSTEMS)
        assert (systems[0], systems[-1]) == (best, "t5_base")
        assert tab.value(ORDER)[5] == order
    tab.click(head("BLEU"))


def test_without_its_script_the_page_is_all_there(
    browser: Browser, page_file: Path, full: list[Section]
) -> None:
    with Tab(browser, page_file, width=360, height=740, scripts=False) as tab:
        found = tab.call("Page.captureSnapshot")["data"]
        assert "diet_rel_base" in found
        root = tab.call("DOM.getDocument")["root"]["nodeId"]

        def count(selector: str) -> int:
            nodes = tab.call("DOM.querySelectorAll", nodeId=root, selector=selector)
            return len(nodes["nodeIds"])

        assert count("table thead button") == 0  # nothing that would do nothing
        assert count("table") == 8
        assert count(".picture .mean") == sum(len(section.group.lines) for section in full)
