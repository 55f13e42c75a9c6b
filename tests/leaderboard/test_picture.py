"""Marks stand where their numbers are, and the picture says in words what it shows."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from diet_mt.evaluation.groups import group
from diet_mt.leaderboard.picture import LONGEST, ROW, Scale, picture
from diet_mt.leaderboard.standings import Section, section_of

from ..evaluation.rows import row, seeds_of


def drawn(section: Section) -> ET.Element:
    return ET.fromstring(picture(section, "p"))


def of_class(element: ET.Element, name: str) -> list[ET.Element]:
    return [each for each in element.iter() if name in each.get("class", "").split()]


def percent(text: str | None) -> float:
    assert text is not None
    assert text.endswith("%")
    return float(text[:-1])


@pytest.mark.parametrize(
    ("values", "step", "ticks"),
    [
        ([27.0, 35.5], 2, [28, 30, 32, 34]),
        ([38.0, 40.1], 0.5, [38, 38.5, 39, 39.5, 40]),
        ([0.0, 100.0], 20, [0, 20, 40, 60, 80, 100]),
        ([30.0], 0.1, [29.9, 30.0, 30.1]),
    ],
)
def test_ticks_are_round_and_few(values: list[float], step: float, ticks: list[float]) -> None:
    scale = Scale(values)
    assert scale.step == step
    assert scale.ticks() == pytest.approx(ticks)
    assert all(0 <= percent(scale.place(value)) <= 100 for value in [*values, *ticks])


def test_marks_are_in_proportion(full: list[Section]) -> None:
    scene = drawn(full[0])
    means = {
        standing.line.bleu: percent(mark.get("cx"))
        for standing, mark in zip(full[0].standings, of_class(scene, "mean"), strict=True)
        if standing.line
    }
    (low, first), *_, (high, last) = sorted(means.items())
    slope = (last - first) / (high - low)
    for bleu, place in means.items():
        assert place == pytest.approx(first + slope * (bleu - low), abs=0.02)
    bars = [bar for bar in of_class(scene, "bar") if bar.get("y1") == bar.get("y2")]
    assert len(bars) == len(means)
    for bar, (bleu, place) in zip(bars, means.items(), strict=True):
        ends = percent(bar.get("x1")), percent(bar.get("x2"))
        assert ends == pytest.approx((place - slope * 0.83, place + slope * 0.83), abs=0.03), bleu
    assert len(of_class(scene, "seed")) == 2 + 3  # of those with more than one
    published = sorted(percent(mark.get("x")) for mark in of_class(scene, "published"))
    assert published == pytest.approx(
        [first + slope * (bleu - low) for bleu in (39.0, 39.47, 40.1)], abs=0.03
    )


def test_what_was_not_measured_has_only_the_paper_s_mark(full: list[Section]) -> None:
    scene = drawn(full[2])
    assert len(of_class(scene, "mean")) == len(full[2].standings) - 1
    assert len(of_class(scene, "name")) == len(full[2].standings)
    last = float(of_class(scene, "published")[-1].get("y", ""))
    assert last > ROW * (len(full[2].standings) - 1)


def test_it_says_in_words_what_it_shows(full: list[Section], plain: Section) -> None:
    scene = drawn(full[0])
    assert scene.get("role") == "img"
    title, text = scene[0], scene[1]
    assert scene.get("aria-labelledby") == f"{title.get('id')} {text.get('id')}"
    assert title.text == "BLEU, newstest2018, en-de"
    assert text.text is not None
    assert text.text.startswith("shaw_base: 39.90 ± 0.83, paper 40.10; t5_base: 39.50 ± 0.83; ")
    assert (drawn(plain)[1].text or "").endswith("; none_tiny: 27.00 ± 1.50")


def test_a_long_or_wild_name_does_no_harm() -> None:
    (found,) = group([row(system="<b>&" + "x" * 50), *seeds_of("t5", {1: 20.0})])
    names = [mark.text or "" for mark in of_class(drawn(section_of(found, {})), "name")]
    assert names[0].startswith("<b>&xx")
    assert len(names[0]) == LONGEST
    assert names[0].endswith("…")


def test_one_system_alone_is_drawn() -> None:
    (found,) = group([row()])
    assert percent(of_class(drawn(section_of(found, {})), "mean")[0].get("cx")) == 50.0
