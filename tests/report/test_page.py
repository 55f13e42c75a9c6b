"""The page: precomputed comparisons, pictures, escaped texts, and its use in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from diet_mt.cli.reports import PICTURES as CHOICES
from diet_mt.corpora.parallel import read_lines
from diet_mt.evaluation.curves import LearningCurve
from diet_mt.evaluation.hypotheses import read_hypotheses, read_sentences
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.lengths import buckets, difference, parts_of
from diet_mt.report.page import page, pairs_of
from diet_mt.report.pictures import PICTURES, Sidecars, inline, picture_of, read_speeds
from diet_mt.report.sections import Section, read_sections
from diet_mt.report.style import pyplot

from ..evaluation.rows import row, seeds_of
from .stub import NOTHING, section
from .toy import WILD

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENS = {"phone": (360, 740), "desktop": (1440, 900)}
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'$title"


@pytest.fixture(scope="module")
def found(toy: Path) -> Section:
    (only,), _, _ = read_sections([toy / "toy.en-de.jsonl"], {})
    return only


def sidecars(toy: Path) -> Sidecars:
    return Sidecars(read_sentences([toy / "toy.en-de.jsonl"]))


def test_pairs_are_those_of_the_tests_and_of_the_buckets(toy: Path, found: Section) -> None:
    """By length as ``diet-mt lengths`` computes it from hypotheses and references."""
    pairs = pairs_of(found, sidecars(toy))
    assert pairs is not None
    lines = found.group.lines
    assert pairs["systems"] == [line.name for line in lines]
    assert pairs["first"] == [0, 2]  # the best and the baseline
    assert len(pairs["pairs"]) == 6
    tests = found.tests
    assert tests is not None
    value, half, p = tests.difference(lines[1], lines[3])
    row_of = pairs["pairs"][4]  # 01 02 03 12 13
    assert row_of[:3] == [round(value, 2), round(half, 2), round(p, 4)]
    sources, references = (list(read_lines(toy / f"test.{side}")) for side in ("en", "de"))
    parts = parts_of([len(line.split()) for line in sources], count=5)
    assert pairs["parts"] == [f"{part.name} ({len(part.members)})" for part in parts]
    own, other = (
        buckets(sources, [read_hypotheses(toy, each) for each in line.results], references, parts)
        for line in (lines[1], lines[3])
    )
    for place, (one, two) in enumerate(zip(own, other, strict=True)):
        gap = difference(one.statistics, two.statistics)
        wanted = [round(gap.value, 1), round(gap.half_width, 1)]
        assert row_of[3 + 2 * place : 5 + 2 * place] == pytest.approx(wanted, abs=0.11)


def test_without_counts_nothing_is_compared() -> None:
    assert pairs_of(section(seeds_of("shaw", {1: 30.0})), Sidecars()) is None


def test_pictures(toy: Path, found: Section, tmp_path: Path) -> None:
    assert set(PICTURES) == set(CHOICES)
    timed = [
        {"size": "tiny", "system": line.system, "measure": "decode", "machine": "m",
         "median": 50.0 + n, "low": 49.0, "high": 60.0, "threads": 1, "revision": "r",
         "positions": line.results[0].encoding, "command": "x --data data/toy.en-de/bin"}
        for n, line in enumerate(found.group.lines)
    ]  # fmt: skip
    (tmp_path / "benchmark").mkdir()
    text = "".join(json.dumps(each) + "\n" for each in timed)
    (tmp_path / "benchmark" / "x.jsonl").write_text(text, encoding="utf-8")
    speeds = read_speeds([tmp_path])
    (key,) = speeds
    assert key == ("tiny", "toy.en-de")
    assert speeds[key].where == "toy.en-de, m, 1 threads, revision r, random weights"
    data = Sidecars(sidecars(toy).counts, speeds)
    for name in PICTURES:
        drawn = inline(picture_of(name, [found], data), name)
        assert drawn.startswith('<svg role="img"')
        titles = re.findall("<title>(.*?)</title>", drawn)
        assert [title.partition(":")[0] for title in titles] == [
            line.name for line in found.group.lines
        ]
    assert picture_of("lengths", [section(seeds_of("shaw", {1: 30.0}))], Sidecars()) is None


def test_numbers_in_pictures_are_cut_but_not_those_of_texts() -> None:
    figure, axes = pyplot().subplots()
    (line,) = axes.plot([0, 1], [1.23456, 2], label="x 1.2345")
    line.set_gid("t:<x> 1.2345")
    drawn = inline(figure, HOSTILE)
    assert "<title>&lt;x&gt; 1.2345</title>" in drawn
    assert not re.search(r'd="[^"]*\.\d\d', drawn)
    assert "<img" not in drawn


def test_texts_of_rows_are_not_markup(toy: Path) -> None:
    wild = row(**dict.fromkeys(("system", "test_set", "train_revision"), HOSTILE),
               versions={"fairseq": HOSTILE, "torch": HOSTILE})  # fmt: skip
    shown = page([section([wild, *seeds_of("none", {1: 1.0}, test_set=HOSTILE)])], [], NOTHING, [])
    assert "<img src" not in shown
    assert shown.count("</script>") == 1
    assert "$title" in shown
    made = (toy / "page.html").read_text(encoding="utf-8")
    assert WILD not in made
    assert len(made) < 200_000
    (again,), _, kept = read_sections([toy / "toy.en-de.jsonl"], {})
    assert page([again], [], kept, [toy]) == page([again], [], kept, [toy])


def test_learning_curves_are_those_of_the_folders(tmp_path: Path) -> None:
    curves = [
        LearningCurve(name, name, "none", 1, 0, {}, [[10, 5.0, 32.0], [20, 4.0, last]], "", name)
        for name, last in (("shaw", 16.0), ("t5", None))
    ]
    for name in ("curves/one.jsonl", "mlm/curves.jsonl", "curves/single.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_rows(tmp_path / name, curves[: 1 if "single" in name else 2])
    shown = page([], [], NOTHING, [tmp_path])
    captions = re.findall("<figcaption>(.*?)</figcaption>", shown)
    assert captions == ["Validation perplexity, one", "Validation perplexity, mlm"]
    assert "<title>t5: diverged</title>" in shown


@pytest.fixture(params=SCREENS)
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
    assert systems(tab) == ["diet_rel", "shaw"]
    box.fill("")
    assert len(systems(tab)) == 4


def test_any_two_systems_are_compared(tab: Page, toy: Path, found: Section) -> None:
    pairs: Any = pairs_of(found, sidecars(toy))
    place = tab.locator(".pair")
    first, second = place.locator("select").all()
    for one, other, number, sign in ((1, 3, 4, 1), (3, 1, 4, -1), (0, 1, 0, 1)):
        first.select_option(str(one))
        second.select_option(str(other))
        value, half, p, *parts = pairs["pairs"][number]
        rows = [each.inner_text().split("\t") for each in place.locator("tr").all()]
        shown = rows[0][1].replace("−", "-").split(" ± ")
        assert [float(each) for each in shown] == [sign * value, half]
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
    shown = opened.locator("figure svg").first.evaluate("(svg) => getComputedStyle(svg).filter")
    assert ("invert" in shown) == (scheme == "dark")
    context.close()
