"""The page on a phone and on a desk, light and dark, used in Chromium where there is one.

With SCREENSHOTS=DIR in the environment the pictures stay there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from diet_mt.blocks import Grid, Heading
from diet_mt.leaderboard.beside import Beside
from diet_mt.leaderboard.page import page
from diet_mt.leaderboard.standings import Section

from ..evaluation.rows import row, seeds_of
from .browsing import SCREENS, opened
from .conftest import page_of_said, sections_of
from .made_up import learning

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = "rows => rows.map(row => row.querySelector('.name, th').textContent)"


@pytest.fixture(params=SCREENS)
def tab(request: pytest.FixtureRequest, browser: Browser, page_file: Path) -> Iterator[Page]:
    with opened(browser, page_file, request.param) as page:
        yield page


def shown(tab: Page, what: str) -> list[str]:
    """Names in the first table, or in the picture above it, as far as they are to be seen."""
    rows = {"table": ":scope > .frame tbody tr", "picture": ".rows li"}[what]
    first = tab.locator(".board").first
    found: list[str] = first.locator(f"{rows}:not([hidden])").evaluate_all(NAMES)
    return found


def head(tab: Page, title: str) -> Any:
    return tab.locator(".board").first.locator("thead button").get_by_text(title, exact=True).first


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_screenshots(
    browser: Browser, said: Path, tmp_path: Path, screen: str, scheme: str
) -> None:
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path))
    with opened(browser, said / "page.html", screen, color_scheme=scheme) as tab:
        for name, whole in ((f"{screen}-{scheme}", False), (f"{screen}-{scheme}-whole", True)):
            tab.locator(".two").first.scroll_into_view_if_needed()
            assert tab.screenshot(path=folder / f"{name}.png", full_page=whole)
        paper, ink = tab.evaluate(
            "(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))"
        )
        light, dark = (sum(map(int, re.findall(r"\d+", colour))) for colour in (paper, ink))
        assert (light > dark) == (scheme == "light")


def test_the_page_is_no_wider_than_the_screen(tab: Page) -> None:
    width = tab.viewport_size["width"] if tab.viewport_size else 0
    wide = "document.scrollingElement.scrollWidth"
    assert tab.evaluate(wide) <= width
    tab.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    assert tab.evaluate(wide) <= width
    # What is wider scrolls in a frame of its own, and the names stay in sight.
    frame = tab.locator(".frame").first
    frame.evaluate("frame => frame.scrollLeft = 1000")
    box = frame.locator("tbody th").first.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] < 0.55 * width


def test_the_picture_is_drawn(tab: Page, full: list[Section]) -> None:
    """Rows of 24 pixels, marks between names and values, in the colours of their families."""
    rows = tab.locator(".rows li").evaluate_all(
        "rows => rows.map(row => { const mark = row.querySelector('.mean');"
        "const box = (element) => element.getBoundingClientRect();"
        "return mark && [box(row).height, box(row.querySelector('.name')).right, box(mark).left,"
        "box(mark).right, box(row.lastElementChild).left, row.className.split(' ')[0],"
        "getComputedStyle(mark).fill]; })"
    )
    marked = [row for row in rows if row]
    assert len(rows) == sum(len(section.standings) for section in full)
    assert len(marked) == len([s for section in full for s in section.standings if s.line])
    for height, name, left, right, value, _, _ in marked:
        assert height == 24
        assert name <= left < right <= value
    colours = {family: fill for *_, family, fill in marked}
    assert len(set(colours.values())) == len(colours) > 3


def test_a_click_sorts_table_and_picture_and_another_turns_both(tab: Page) -> None:
    before = shown(tab, "table")
    assert shown(tab, "picture") == before
    for wanted in (sorted(before), sorted(before, reverse=True)):
        head(tab, "system").click()
        assert shown(tab, "table") == shown(tab, "picture") == wanted
    head(tab, "BLEU").click()
    assert shown(tab, "table") == before
    orders = tab.locator("thead").first.locator("th[aria-sort]")
    assert orders.evaluate_all("heads => heads.map(head => head.ariaSort)") == ["descending"]


def test_the_keyboard_sorts_and_empty_cells_stay_last(tab: Page) -> None:
    head(tab, "paper").focus()
    for best in ("shaw_base", "sinusoidal_base"):
        tab.keyboard.press("Enter")
        assert (shown(tab, "table")[0], shown(tab, "table")[-1]) == (best, "t5_base")


def test_texts_that_stand_for_numbers_are_sorted_by_these(browser: Browser, tmp_path: Path) -> None:
    chosen = {"rotary": 1.15, "sinusoidal": 0.6, "t5": 1.2}
    rows = [
        each
        for system, lenpen in chosen.items()
        for each in seeds_of(system, {1: 30.0}, lenpen=lenpen, lenpen_tried="0.6 1.15 1.2")
    ]
    file = tmp_path / "page.html"
    file.write_text(page(sections_of(rows)), encoding="utf-8")
    with opened(browser, file) as tab:
        for wanted in (["t5", "rotary", "sinusoidal"], ["sinusoidal", "rotary", "t5"]):
            head(tab, "length penalty").click()
            assert shown(tab, "table") == [f"{name}_tiny" for name in wanted]


def test_a_table_of_places_is_there_while_one_of_its_systems_is(
    browser: Browser, tmp_path: Path
) -> None:
    places = ("encoder", "decoder", "cross")
    rows = [
        row(system=f"diet_rel.{place}", positions=f"diet-rel in={place} scale=head", bleu=bleu)
        for bleu, place in enumerate(places, 30)
    ]
    file = tmp_path / "page.html"
    file.write_text(page(sections_of([*rows, *seeds_of("t5", {1: 30.0})])), encoding="utf-8")
    with opened(browser, file) as tab:
        for text, there in (("DIET-rel", True), ("cross", True), ("t5", False), ("", True)):
            tab.get_by_role("searchbox").fill(text)
            assert tab.locator(".where table").is_visible() == there


def test_filters_by_words_families_direction(tab: Page) -> None:
    tab.keyboard.press("Tab")
    search = tab.get_by_role("searchbox")
    search.focus()
    tab.keyboard.type("DIET rel")
    assert shown(tab, "table") == shown(tab, "picture") == ["diet_rel_base"]
    assert tab.locator("output").inner_text() == "4 of 16 rows of BLEU; sentences are about all"
    search.fill("")
    assert tab.locator("output").inner_text() == ""
    chip = tab.get_by_role("button", name="in the logits")
    chip.focus()
    tab.keyboard.press("Space")
    assert shown(tab, "table") == ["sinusoidal_base"]
    assert chip.get_attribute("aria-pressed") == "false"
    chip.click()
    tab.get_by_label("Direction").select_option("cs-en")
    visible = tab.locator(".board:not([hidden])")
    assert visible.count() == 1
    assert "cs-en" in visible.inner_text()


def test_a_border_of_clusters_stays_when_the_row_below_it_is_hidden(tab: Page) -> None:
    board = tab.locator(".board").first
    names = shown(tab, "picture")
    below = "rows => rows.forEach((row, place) => { row.dataset.cluster = place < 1 ? 1 : 2; })"
    board.locator(".rows li").evaluate_all(below)
    borders = board.locator(".rows li.cluster:not([hidden])")
    family = board.locator(".rows li").nth(1).get_attribute("class")
    assert family is not None
    chip = tab.locator(f'.families [data-family="{family.split()[0]}"]')
    for hidden in (True, False):
        chip.click()
        left = shown(tab, "picture")
        assert (names[1] in left) != hidden
        assert borders.evaluate_all(NAMES) == ([left[1]] if left[0] == names[0] else [])


def test_what_a_browser_remembers_is_filtered_by(browser: Browser, page_file: Path) -> None:
    tab = browser.new_page()
    tab.goto(page_file.as_uri())
    tab.get_by_label("Direction").select_option("cs-en")
    tab.goto("about:blank")
    tab.go_back()
    assert tab.get_by_label("Direction").input_value() == "cs-en"
    assert tab.locator(".board:not([hidden])").count() == 1
    tab.close()


def test_on_paper_no_column_is_cut(browser: Browser, page_file: Path) -> None:
    """A4 with usual margins."""
    with opened(browser, page_file) as tab:
        tab.set_viewport_size({"width": 718, "height": 1047})
        tab.emulate_media(media="print")
        assert not tab.locator("#filter").is_visible()
        cut = "frames => frames.filter(each => each.scrollWidth > each.clientWidth).length"
        assert tab.locator(".board > .frame").evaluate_all(cut) == 0


def test_pictures_can_be_read_as_text(desk: Page) -> None:
    for view in desk.locator(".board .view").all():
        points = view.locator(".picture > [data-system] > title").all_text_contents()
        assert sorted(points) == sorted(view.locator("figcaption li").all_text_contents())
        view.get_by_text("As text").click()
        assert view.locator("figcaption li").first.is_visible()


def test_a_section_without_a_row_left_goes(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file) as tab:
        tab.get_by_role("searchbox").fill("rotary")
        assert tab.locator(".board:visible h2").all_inner_texts() == ["newstest2018, cs-en"]
        assert tab.locator("nav li:visible").count() == 2  # and how to read it
        tab.get_by_role("searchbox").fill("")
        assert tab.locator("nav li:visible").count() == 5


def test_nothing_is_left_of_what_a_filter_empties(
    browser: Browser, tmp_path: Path, full: list[Section]
) -> None:
    points = [(1, 9.0), (2, 8.0)]
    data = {"data": "wmt18.en-de/bin"}
    curves = [replace(learning(name, points), settings=data) for name in ("t5", "rotary")]
    beside = Beside(learning={"x": curves})
    board = Grid(["system", "MRPC"], [["diet-rel (tiny)", "80"]], [False, True])
    file = tmp_path / "page.html"
    file.write_text(page(full, [Heading("GLUE"), board], beside), encoding="utf-8")
    with opened(browser, file) as tab:
        search = tab.get_by_role("searchbox")
        for text, left in (("rotary", {"learning"}), ("diet_rel_tiny", {"tasks"}), ("zzz", set())):
            search.fill(text)
            sections = tab.locator("main > section:visible").evaluate_all(
                "all => all.map(s => s.id)"
            )
            assert {each for each in sections if not each.startswith("group")} == left
        assert tab.locator("main h2:visible, main h3:visible, .view:visible").count() == 0
        search.fill("")
        tab.get_by_label("Direction").select_option("cs-en")
        assert not tab.locator("#tasks").is_visible()
        assert not tab.locator("#learning").is_visible()  # trained on a corpus of another direction
        tab.get_by_label("Direction").select_option("")
        for corpus, is_there in (("wmt18.en-de", True), ("wmt18.cs-en", False)):
            tab.get_by_label("Corpus").select_option(corpus)
            assert tab.locator("#learning").is_visible() == is_there


def test_tasks_and_learning_follow_the_families(
    browser: Browser, tmp_path: Path, full: list[Section]
) -> None:
    points = [(1, 9.0), (2, 8.0)]
    beside = Beside(learning={"x": [learning(n, points) for n in ("t5", "rotary")]})
    rows = [["diet-rel (tiny)", "80"], ["paper: DIET-REL", "90"], ["rotary (tiny)", "-3"]]
    board = Grid(["system", "MRPC"], rows, [False, True])
    file = tmp_path / "page.html"
    file.write_text(page(full, [board], beside), encoding="utf-8")
    with opened(browser, file) as tab:
        assert tab.locator("#tasks tbody tr:visible").count() == 3
        tab.locator("#tasks").get_by_role("button", name="MRPC").click()
        scores = tab.locator("#tasks tbody tr").all_inner_texts()
        assert [row.split("\t")[-1] for row in scores] == ["80", "90", "−3"]  # below its system
        tab.locator("#tasks").get_by_role("button", name="MRPC").click()
        scores = tab.locator("#tasks tbody tr").all_inner_texts()
        assert [row.split("\t")[-1] for row in scores] == ["−3", "80", "90"]
        tab.get_by_role("button", name="in the logits").click()
        assert tab.locator("#tasks tbody tr:visible").all_inner_texts() == ["rotary (tiny)\t−3"]
        names = "all => all.map(one => one.dataset.system)"
        assert tab.locator("#learning .curve:not(.out)").evaluate_all(names) == ["rotary"]


def test_without_its_script_the_page_is_all_there(
    browser: Browser, page_file: Path, said: Path, full: list[Section]
) -> None:
    with opened(browser, page_file, "phone", java_script_enabled=False) as tab:
        assert tab.locator("thead button").count() == 0  # nothing that would do nothing
        assert not tab.locator("#filter").is_visible()
        assert not tab.get_by_text("A click on the head").is_visible()
        assert tab.locator(".board > .frame table").count() == len(full)
        assert tab.get_by_text("diet_rel_base").first.is_visible()
    with opened(browser, said / "page.html", java_script_enabled=False) as tab:
        assert not tab.locator(".two").is_visible()
        assert tab.locator(".view .picture").first.is_visible()


def test_two_hundred_systems_are_sorted_and_filtered_at_once(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of_said(tmp_path, systems=200), encoding="utf-8")
    with opened(browser, file) as tab:
        ready = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        assert tab.evaluate(ready) < 3000  # milliseconds
        spent = tab.evaluate(
            "() => { const start = performance.now();"
            "document.querySelector('thead button').click();"
            "document.querySelector('[type=search]').value = 't5_1';"
            "document.getElementById('filter').dispatchEvent(new Event('input'));"
            "document.body.offsetHeight; return performance.now() - start; }"
        )
        assert spent < 1000
        assert len(shown(tab, "table")) == 111  # t5_1, t5_10 to 19, t5_100 to 199
        # Long tables scroll in frames of their own, so what is below them is near.
        top = tab.locator(".two").evaluate("place => place.getBoundingClientRect().top + scrollY")
        assert top < 3000  # pixels
