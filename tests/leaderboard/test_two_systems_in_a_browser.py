"""Any two systems of a section, chosen and compared in Chromium where there is one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from diet_mt.corpora.parallel import read_lines
from diet_mt.evaluation.comparisons import p_text, resampled_group
from diet_mt.evaluation.groups import group
from diet_mt.evaluation.kept import kept_hypotheses
from diet_mt.evaluation.lengths import parts_of
from diet_mt.evaluation.records import read_results
from diet_mt.evaluation.sentences import read_sentences, sentence_bleu

from .browsing import SCREENS, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.mark.parametrize("screen", SCREENS)
def test_names_at_the_ends_of_curves_stand_apart(browser: Browser, said: Path, screen: str) -> None:
    """Whatever two are chosen; these have theirs."""
    with opened(browser, said / "page.html", screen) as tab:
        first, second = (tab.get_by_label(f"{place} system") for place in ("first", "second"))
        systems = first.locator("option").all_inner_texts()
        for one, other in itertools.combinations(systems, 2):
            first.select_option(one)
            second.select_option(other)
            pictures = tab.locator(".board .picture:has(> .curve)").evaluate_all(
                "all => all.map(one => [...one.querySelectorAll('.curve .label')].filter(name =>"
                "getComputedStyle(name).display !== 'none').map(name => [name.textContent,"
                "name.getBoundingClientRect()]).map(([said, box]) =>"
                "[box.top, box.bottom, box.right, said]))"
            )
            assert pictures
            for names in pictures:
                assert {one, other} <= {name for *_, name in names}
                for above, below in itertools.pairwise(sorted(names)):
                    assert above[1] <= below[0] + 3  # pixels, between letters
                assert max(right for _, _, right, _ in names) <= SCREENS[screen][0]


@pytest.mark.parametrize("screen", SCREENS)
def test_the_keyboard_reaches_the_choice_of_two(browser: Browser, said: Path, screen: str) -> None:
    with opened(browser, said / "page.html", screen) as tab:
        reached = []
        for _ in range(100):
            tab.keyboard.press("Tab")
            reached.append(tab.evaluate("document.activeElement.ariaLabel"))
            if reached[-1] == "second system":
                break
        assert reached[-2:] == ["first system", "second system"]
        verdict = tab.locator(".two [role=status]")
        before = verdict.inner_text()
        tab.keyboard.press("ArrowDown")
        assert verdict.inner_text() != before


def test_two_systems_are_compared_as_diet_mt_compare_does(desk: Page, said: Path) -> None:
    (found,) = group(read_results(said / "toy.en-de.jsonl"))
    expected = resampled_group(found, read_sentences([said / "toy.en-de.jsonl"]))
    assert expected
    lines = {line.system: line for line in found.lines}
    desk.locator(".two").scroll_into_view_if_needed()
    for first, second in (("shaw", "none"), ("none", "diet_rel"), ("diet_rel", "shaw")):
        names = [lines[system].name for system in (first, second)]
        for place, name in zip(("first", "second"), names, strict=True):
            desk.get_by_label(f"{place} system").select_option(name)
        verdict = desk.locator(".two [role=status]").inner_text().replace("−", "-")
        difference, half, p = expected.difference((lines[first], lines[second]))
        said = p_text(p, expected.signature)
        sign = "" if said.startswith("≤") else "= "
        assert verdict.strip() == (
            f"{difference:+.2f} BLEU for {names[0]} over {names[1]} ± {half:.2f}, p {sign}{said}."
        )


def test_sentences_that_differ_most_stand_side_by_side(desk: Page, said: Path) -> None:
    desk.locator(".two").scroll_into_view_if_needed()
    desk.get_by_label("first system").select_option("shaw_tiny")
    desk.get_by_label("second system").select_option("none_tiny")
    items = desk.locator(".sentences li")
    assert items.count() == 10
    assert desk.locator(".sentences li:visible").count() == 4
    kept = read_sentences([said / "toy.en-de.jsonl"])
    (texts,) = kept.texts.values()
    rows = {row.system: row for row in read_results(said / "toy.en-de.jsonl")}
    bleu = [
        sentence_bleu(
            kept.counts[r.hypotheses_sha256, r.references_sha256], texts.reference_lengths
        )
        for r in (rows["shaw"], rows["none"])
    ]
    gaps = {n: abs(bleu[0][n] - bleu[1][n]) for n in texts.numbers}
    number = max(gaps, key=gaps.__getitem__)
    first = items.first.inner_text()
    assert first.startswith(f"Sentence {number + 1}: shaw_tiny {gaps[number]:.1f} ahead")
    said_of = [kept_hypotheses(said, rows[system])[number] for system in ("shaw", "none")]
    for text, kind in zip(said_of, ("first", "second"), strict=True):
        shown_text = items.first.locator(f".{kind}").inner_text()
        assert shown_text.split() == text.split()
    marked = items.first.locator(".second mark").all_inner_texts()
    unmarked = items.first.locator(".second").evaluate(
        "place => [...place.childNodes].filter((node) => node.nodeType === 3)"
        ".map((node) => node.textContent).join(' ')"
    )
    assert marked
    rest = iter(said_of[0].split())
    assert all(word in rest for word in unmarked.split())  # in this order
    # What models wrote is text: no element of theirs is in the page.
    assert desk.locator("img").count() == 0


def test_a_system_is_not_compared_with_itself(desk: Page) -> None:
    """What is said instead is read aloud: the element of the verdict stays."""
    desk.locator(".two").scroll_into_view_if_needed()
    verdict = desk.locator(".two [role=status]").element_handle()
    for first, said in (("shaw_tiny", "Choose two different"), ("none_tiny", "BLEU for none")):
        desk.get_by_label("first system").select_option(first)
        desk.get_by_label("second system").select_option("shaw_tiny")
        assert said in verdict.inner_text()
    desk.get_by_label("first system").select_option("shaw_tiny")
    assert desk.locator(".sentences").count() == 0


def test_length_buckets_are_shown(desk: Page, said: Path) -> None:
    parts = parts_of([len(line.split()) for line in read_lines(said / "test.en")], count=5)
    desk.locator(".two").scroll_into_view_if_needed()
    names = desk.locator(".two .rows .name").all_inner_texts()
    assert names == [f"{part.name} words" for part in parts]
    assert len(names) > 1
