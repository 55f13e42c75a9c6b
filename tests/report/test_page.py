"""Pictures and the page: comparisons, colours, learning curves, and its use in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from diet_mt.corpora.parallel import read_lines
from diet_mt.evaluation.curves import LearningCurve
from diet_mt.evaluation.hypotheses import Sentences, read_hypotheses, read_sentences
from diet_mt.evaluation.json_rows import read_rows, write_rows
from diet_mt.evaluation.lengths import buckets, difference, parts_of
from diet_mt.positions import NAMES
from diet_mt.report.page import page, pairs_of
from diet_mt.report.pictures import PICTURES, by_length, inline, label, picture_of
from diet_mt.report.sections import Section, read_sections
from diet_mt.report.style import (
    FAMILIES,
    color_of,
    drawn,
    encodings,
    family_of,
    line_styles,
    pyplot,
)

from ..evaluation.rows import row, seeds_of
from ..evaluation.test_curves import JSON, POINTS, train
from ..processes import called
from .toy import NOTHING, WILD, section

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENS = {"phone": (360, 740), "desktop": (1440, 900)}
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'$title"


@pytest.fixture(scope="module")
def shown(toy: Path) -> Section:
    (only,), _, _ = read_sections([toy / "toy.en-de.jsonl"], {})
    return only


@pytest.fixture(scope="module")
def counts(toy: Path) -> Sentences:
    return read_sentences([toy / "toy.en-de.jsonl"])


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


def test_pairs_are_those_of_the_tests_and_of_the_buckets(
    toy: Path, shown: Section, counts: Sentences
) -> None:
    """By length as ``diet-mt lengths`` computes it from hypotheses and references."""
    pairs = pairs_of(shown, by_length(shown, counts))
    assert pairs is not None
    lines = shown.group.lines
    assert pairs["systems"] == [line.name for line in lines]
    assert pairs["first"] == [0, 2]  # the best and the baseline
    assert len(pairs["pairs"]) == 6
    tests = shown.tests
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
    assert pairs_of(section(seeds_of("shaw", {1: 30.0})), None) is None


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_names_all_systems(name: str, shown: Section, counts: Sentences) -> None:
    svg = inline(picture_of(name, [shown], counts), name)
    assert svg.startswith('<svg role="img"')
    titles = re.findall("<title>(.*?)</title>", svg)
    assert [title.partition(":")[0] for title in titles] == [
        line.name for line in shown.group.lines
    ]
    assert picture_of("lengths", [section(seeds_of("shaw", {1: 30.0}))], NOTHING) is None


def test_numbers_in_pictures_are_cut_but_not_those_of_texts() -> None:
    _, axes = pyplot().subplots()
    (line,) = axes.plot([0, 1], [1.23456, 2], label="x 1.2345")
    line.set_gid("t:<x> 1.2345")
    svg = inline(axes.figure, HOSTILE)
    assert "<title>&lt;x&gt; 1.2345</title>" in svg
    assert not re.search(r'd="[^"]*\.\d\d', svg)
    assert "<img" not in svg


def test_a_png_is_small_and_the_same_each_time() -> None:
    pictures = []
    for _ in range(2):
        figure, axes = pyplot().subplots()
        axes.imshow([[0, 1], [2, 3]], cmap="RdBu_r")
        pictures.append(drawn(figure, "png"))
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) < 10_000


def test_texts_of_rows_are_not_markup(toy: Path) -> None:
    wild = row(**dict.fromkeys(("system", "test_set", "train_revision"), HOSTILE),
               versions={"fairseq": HOSTILE, "torch": HOSTILE})  # fmt: skip
    made = page([section([wild, *seeds_of("none", {1: 1.0}, test_set=HOSTILE)])], [], NOTHING, [])
    assert "<img src" not in made
    assert made.count("</script>") == 1
    assert "$title" in made
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


def test_curves_of_trainings(tmp_path: Path) -> None:
    folders = [train(tmp_path / name, name) for name in ("learned", "shaw")]
    folders.append(train(tmp_path / "t5", "t5", JSON.replace("16.00", "inf")))
    out = tmp_path / "results" / "curves"
    # A folder or the log in it.
    assert called("bench", "curves", *folders[:2], folders[2] / "train.log", "--out", out) == 0
    rows = [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]
    assert [(row["system"], row["points"]) for row in rows] == [
        ("learned", POINTS),
        ("shaw", POINTS),
        ("t5", [[10, 5.0, 32.0], [20, 4.0, None]]),
    ]
    assert out.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    # More curves; a training that is there already counts once.
    more = train(tmp_path / "more", "learned", seed="2")
    given = (out.with_suffix(".jsonl"), more, folders[0])
    assert called("bench", "curves", *given, "--svg", "--out", tmp_path / "new") == 0
    assert len(read_rows(LearningCurve, tmp_path / "new.jsonl")) == 4
    svg = (tmp_path / "new.svg").read_text(encoding="utf-8")
    assert {"t5: diverged", "learned: 16.00, 16.00"} <= set(re.findall(">([^<>]+)</text>", svg))
    # Next to the second half, where learned and shaw end at one height.
    names = [name for name in ("learned", "shaw", "t5") if f">{name}</text>" in svg]
    assert names == ["learned", "t5"]


@pytest.mark.parametrize(
    ("option", "value"), [("tokens_per_sample", "64"), ("mask_prob", "0.3"), ("task", "other")]
)
def test_trainings_that_cannot_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    folders = [train(tmp_path / "a", "learned"), train(tmp_path / "b", "shaw", **{option: value})]
    assert called("bench", "curves", *folders, "--out", tmp_path / "curves") == 2
    assert option.replace("_", "-") in capsys.readouterr().err
    assert not list(tmp_path.glob("curves*"))


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


def test_any_two_systems_are_compared(tab: Page, counts: Sentences, shown: Section) -> None:
    pairs: Any = pairs_of(shown, by_length(shown, counts))
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
