"""Pictures and the page: comparisons, colours, learning curves, and its use in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from diet_mt.evaluation.hypotheses import read_sentences
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.positions import NAMES
from diet_mt.report.boards import intervals
from diet_mt.report.curves import LearningCurve, label
from diet_mt.report.lengths import BLEU, Sheet, parts_of, picture
from diet_mt.report.page import inline, page, pairs_of
from diet_mt.report.sections import Section, read_sections
from diet_mt.report.style import (
    FAMILIES,
    color_of,
    encodings,
    family_of,
    line_styles,
    pyplot,
)

from ..evaluation.rows import row, seeds_of
from .toy import NOTHING, WILD, section

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENS = {"phone": (360, 740), "desktop": (1440, 900)}
HOSTILE = '</script><img src=x onerror=alert(1)>&"\'$about style="}"'


@pytest.fixture(scope="module")
def shown(toy: Path) -> Section:
    (only,), _, _ = read_sections([toy / "toy.en-de.jsonl"])
    return only


def test_encodings_have_colours_and_families_of_their_own() -> None:
    assert set(encodings()) <= {name.replace("-", "_") for name in NAMES}
    assert len({color for color, _ in encodings().values()}) == len(encodings())
    assert {family for _, family in encodings().values()} | {"other"} == set(FAMILIES)
    for name in ("diet_rel.1", "diet_rel_tiny (beam 5)", "roberta_diet_rel", "diet-rel x=1"):
        assert (color_of(name), family_of(name)) == encodings()["diet_rel"]
    assert color_of("diet_abs_lin_tiny") == encodings()["diet_abs_lin"][0]
    assert color_of("sinusoidal_randomized") == "#555555", "a variant is lighter"
    assert color_of("shaw.published (shaw_tiny)") == color_of("shaw.published") != color_of("shaw")
    assert (color_of("another"), family_of("another")) == (color_of("another_tiny"), "other")
    styles = line_styles(["diet_rel.1", "diet_rel.2", "t5", "t5.encoder"], dashed=True)
    assert [style["marker"] for style in styles.values()] == ["o", "s", "s", "^"]
    assert styles["diet_rel.1"]["color"] == styles["diet_rel.2"]["color"] != styles["t5"]["color"]
    assert [style["linestyle"] for style in styles.values()] == ["-", "-", "-", "--"]


@pytest.fixture(scope="module")
def sheet(shown: Section, toy: Path) -> Sheet:
    made, counts = Sheet("", "words"), read_sentences([toy / "toy.en-de.jsonl"])
    lengths = counts.texts[shown.group.conditions.references_sha256].source_lengths
    made.add(shown.group, counts, parts_of(lengths, count=5))
    return made


def test_pairs_are_those_of_the_tests_and_of_the_parts(shown: Section, sheet: Sheet) -> None:
    pairs = pairs_of(shown, sheet)
    assert pairs is not None
    lines = shown.group.lines
    assert pairs["systems"] == [line.name for line in lines]
    assert pairs["first"] == [0, 2]  # the best and the baseline
    assert len(pairs["pairs"]) == 6
    value, half, p = shown.tests.difference(lines[1], lines[3])
    row_of = pairs["pairs"][4]  # 01 02 03 12 13
    assert row_of[:3] == [round(value, 2), round(half, 2), round(p, 4)]
    assert pairs["parts"] == [part.head for part in sheet.parts]
    bleu = sheet.values[BLEU]
    for place, part in enumerate(sheet.parts):
        gap = bleu[lines[1].name][part.name].value - bleu[lines[3].name][part.name].value
        assert row_of[3 + 2 * place] == pytest.approx(gap, abs=0.06)
        assert row_of[4 + 2 * place] > 0
    assert pairs_of(section(seeds_of("shaw", {1: 30.0})), Sheet("")) is None


def test_a_picture_names_all_systems(shown: Section, sheet: Sheet) -> None:
    lines = [line.name for line in shown.group.lines]
    gains = [line.name for line in shown.group.lines if line is not shown.group.baseline]
    for figure, expected in ((intervals(shown), lines), (picture([sheet]), gains + lines)):
        svg = inline(figure, "name")
        assert svg.startswith('<svg role="img"')
        titles = re.findall("<title>(.*?)</title>", svg)
        assert [title.partition(":")[0] for title in titles] == expected


def test_numbers_in_pictures_are_cut_but_not_those_of_texts() -> None:
    _, axes = pyplot().subplots()
    (line,) = axes.plot([0, 1], [1.23456, 2], label="x 1.2345")
    line.set_gid("t:<x> 1.2345")
    svg = inline(axes.figure, HOSTILE)
    assert "<title>&lt;x&gt; 1.2345</title>" in svg
    assert not re.search(r'd="[^"]*\.\d\d', svg)
    assert "<img" not in svg


def test_texts_of_rows_are_not_markup(toy: Path) -> None:
    wild = row(**dict.fromkeys(("system", "test_set", "train_revision"), HOSTILE),
               versions={"fairseq": HOSTILE, "torch": HOSTILE})  # fmt: skip
    made = page([section([wild, *seeds_of("none", {1: 1.0}, test_set=HOSTILE)])], [], NOTHING, [])
    assert "<img src" not in made
    assert made.count("</script>") == 2  # the pairs, and the page's own
    assert "$about" in made
    assert "{}}" not in made  # no CSS rule
    whole = (toy / "page.html").read_text(encoding="utf-8")
    assert WILD not in whole
    assert len(whole) < 200_000


def test_learning_curves_are_those_of_the_folders(tmp_path: Path) -> None:
    curves = [
        LearningCurve(name, name, "none", 1, 0, {}, [[10, 5.0, 32.0], [20, 4.0, last]], "", name)
        for name, last in (("shaw", 16.0), ("t5", None))
    ]
    for name in ("curves/one.jsonl", "mlm/curves.jsonl", "curves/single.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_rows(tmp_path / name, curves[: 1 if "single" in name else 2])
    made = page([], [], NOTHING, [tmp_path])
    captions = re.findall("<figcaption>(.*?)</figcaption>", made)
    assert captions == ["Validation perplexity, one", "Validation perplexity, mlm"]
    assert "<title>t5: diverged</title>" in made
    empty = LearningCurve("x", "x", "none", 1, 0, {}, [[10, None, None]], "", "")
    assert (empty.finite("loss"), label([empty], "loss")) == ([], "x: diverged")


@pytest.fixture(scope="module", params=SCREENS)
def tab(request: pytest.FixtureRequest, browser: Browser, toy: Path) -> Iterator[Page]:
    """The page in a screen; no request but the first, nothing in the console."""
    width, height = SCREENS[request.param]
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(10_000)  # milliseconds
    opened = context.new_page()
    log: list[str] = []
    opened.on("console", lambda message: log.append(message.text))
    opened.on("pageerror", lambda error: log.append(str(error)))
    opened.on("request", lambda request: log.append(request.url))
    uri = (toy / "page.html").as_uri()
    opened.goto(uri)
    yield opened
    context.close()
    assert [each for each in log if not each.startswith("data:")] == [uri]


def systems(tab: Page) -> list[str]:
    names = tab.locator("#group-1 table").first.locator("tbody tr:visible th")
    return [name.partition("_tiny")[0] for name in names.all_inner_texts()]


def test_the_page_does_not_scroll_sideways(tab: Page) -> None:
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    width = tab.evaluate("innerWidth")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_tables_sort_by_click_and_keyboard(tab: Page) -> None:
    assert systems(tab) == ["diet_rel", "shaw", "sinusoidal", "none"]
    table = tab.locator("#group-1 table").first
    table.get_by_role("button", name="system").click()
    assert systems(tab) == ["diet_rel", "none", "shaw", "sinusoidal"]
    table.get_by_role("button", name="p (Holm)").focus()
    tab.keyboard.press("Enter")
    tab.keyboard.press("Enter")
    assert systems(tab)[-1] == "sinusoidal"  # its cell is empty
    button = table.get_by_role("button", name="BLEU", exact=True)
    button.click()
    button.click()
    assert systems(tab) == ["none", "sinusoidal", "shaw", "diet_rel"]
    orders = table.locator("th[aria-sort]")
    assert orders.evaluate_all("heads => heads.map((head) => head.ariaSort)") == ["ascending"]


def test_systems_and_families_are_filtered(tab: Page) -> None:
    box = tab.get_by_label("Filter systems or families")
    box.fill("diet")
    assert systems(tab) == ["diet_rel"]
    box.fill("logits")
    assert sorted(systems(tab)) == ["diet_rel", "shaw"]
    box.fill("")
    assert len(systems(tab)) == 4


def test_any_two_systems_are_compared(tab: Page, sheet: Sheet, shown: Section) -> None:
    pairs: Any = pairs_of(shown, sheet)
    place = tab.locator(".pair")
    first, second = place.locator("select").all()
    for one, other, number, sign in ((1, 3, 4, 1), (3, 1, 4, -1), (0, 1, 0, 1)):
        first.select_option(str(one))
        second.select_option(str(other))
        value, half, p, *parts = pairs["pairs"][number]
        rows = [each.inner_text().split("\t") for each in place.locator("tr").all()]
        texts = rows[0][1].replace("−", "-").split(" ± ")
        assert [float(each) for each in texts] == [sign * value, half]
        assert rows[0][2] == (f"p {p:.4f}" if p > 0.0001 else "p ≤ 0.0001")
        assert len(rows) == 1 + len(parts) / 2
        assert float(rows[-1][1].split(" ")[0].replace("−", "-")) == sign * parts[-2]
    first.select_option("1")
    assert place.locator("tr").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes(browser: Browser, toy: Path, scheme: Any) -> None:
    context = browser.new_context(color_scheme=scheme)
    opened = context.new_page()
    opened.goto((toy / "page.html").as_uri())
    red = "(c) => Number(getComputedStyle(document.body)[c].match(/\\d+/)[0])"
    assert (opened.evaluate(red, "color") < opened.evaluate(red, "backgroundColor")) == (
        scheme == "light"
    )
    applied = opened.locator("figure svg").first.evaluate("(svg) => getComputedStyle(svg).filter")
    assert ("invert" in applied) == (scheme == "dark")
    context.close()
