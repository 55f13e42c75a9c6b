"""Marks stand where their numbers are."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from diet_mt.leaderboard.picture import grid, marks, scale_of
from diet_mt.leaderboard.scales import Scale
from diet_mt.leaderboard.standings import Section


def drawn(content: str) -> ET.Element:
    return ET.fromstring(f"<svg>{content}</svg>")


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
        ([2.05e6, 3.02e6], 2e5, [2.2e6, 2.4e6, 2.6e6, 2.8e6, 3e6]),
    ],
)
def test_ticks_are_round_and_few(values: list[float], step: float, ticks: list[float]) -> None:
    scale = Scale(values)
    assert scale.step == step
    assert scale.ticks() == pytest.approx(ticks)
    assert all(0 <= percent(scale.place(value)) <= 100 for value in [*values, *ticks])


def test_numbers_at_ticks_are_short_and_differ() -> None:
    assert [Scale([2.05e6, 3.02e6]).text(tick) for tick in (2.2e6, 3e6)] == ["2.2 M", "3 M"]
    assert [Scale([160.0, 190.0]).text(tick) for tick in (160, 165)] == ["160", "165"]
    assert [Scale([38.0, 40.1]).text(tick) for tick in (38, 38.5)] == ["38.0", "38.5"]


def test_marks_are_in_proportion(full: list[Section]) -> None:
    section = full[0]
    scale = scale_of(section)
    rows = {s.line.bleu: drawn(marks(s, scale)) for s in section.standings if s.line}
    means = {bleu: percent(of_class(row, "mean")[0].get("cx")) for bleu, row in rows.items()}
    (low, first), *_, (high, last) = sorted(means.items())
    slope = (last - first) / (high - low)
    for bleu, place in means.items():
        assert place == pytest.approx(first + slope * (bleu - low), abs=0.02)
        bar = of_class(rows[bleu], "bar")[0]
        ends = percent(bar.get("x1")), percent(bar.get("x2"))
        assert ends == pytest.approx((place - slope * 0.83, place + slope * 0.83), abs=0.03)
    seeds = [of_class(row, "seed") for row in rows.values()]
    assert sorted(map(len, seeds)) == [0, 0, 2, 3]  # of those with more than one
    published = [percent(p.get("x")) for row in rows.values() for p in of_class(row, "published")]
    expected = [first + slope * (bleu - low) for bleu in (39.0, 39.47, 40.1)]
    assert sorted(published) == pytest.approx(expected, abs=0.03)
    behind = drawn(grid(section, scale))
    baseline = section.group.baseline
    assert baseline is not None
    (line,) = of_class(behind, "baseline")
    assert percent(line.get("x1")) == means[baseline.bleu]


def test_what_was_not_measured_has_only_the_paper_s_mark(full: list[Section]) -> None:
    last = full[2].standings[-1]
    assert last.line is None
    row = drawn(marks(last, scale_of(full[2])))
    assert [each.get("class") for each in row] == ["published"]
