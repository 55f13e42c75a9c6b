"""Names at the ends of curves: apart, near their curves, the important ones first."""

from __future__ import annotations

import itertools
import re

import pytest

from diet_mt.leaderboard.beside import Beside
from diet_mt.leaderboard.charts import HEIGHT, Curve, Point, curves, points, shortened
from diet_mt.leaderboard.scales import Scale
from diet_mt.leaderboard.views import by_parameters, of_learning

from ..evaluation.rows import seeds_of
from .conftest import sections_of
from .made_up import learning


def heights(number: int) -> dict[str, float]:
    """Of the names that are shown, where ``number`` curves all end at one place."""
    last = f"n{number - 1}"
    found = [
        Curve(name, "input", [(0, 1), (1, 0.5)], important=name == last)
        for name in (f"n{count}" for count in range(number))
    ]
    drawn = curves(found, Scale([0, 1]), Scale([0, 1]))
    shown = r'y="([0-9.]+)" overflow="visible"><text class="label after always" y="4">(n[0-9]+)<'
    return {name: float(y) for y, name in re.findall(shown, drawn)}


def test_all_are_shown_where_there_is_room() -> None:
    found = sorted(heights(8).values())
    assert len(found) == 8
    assert all(below - above >= 13 for above, below in itertools.pairwise(found))
    assert 0 < found[0] < found[-1] < HEIGHT


def test_the_important_ones_are_shown_where_there_is_not() -> None:
    found = heights(200)
    assert 5 < len(found) < 20
    assert "n199" in found


def test_names_stand_near_the_ends_of_their_curves() -> None:
    found = sorted(heights(200).values())
    assert found[-1] - found[0] <= 100
    middle = heights(1)["n0"]
    assert (found[0] + found[-1]) / 2 == pytest.approx(middle, abs=8)


def test_a_name_far_from_its_point_has_a_line_to_it() -> None:
    """And is at no other point, as it would be without."""
    found = [Point(f"p{n}", "input", 1 + n / 100, 1, "") for n in range(4)]
    drawn = points(found, Scale([0, 2]), Scale([0, 2]))
    labels = re.findall(r'<g class="label [^>]*always">(<line class="lead"[^>]*>)?<text', drawn)
    assert labels
    assert all(labels)
    alone = points(found[:1], Scale([0, 2]), Scale([0, 2]))
    assert "always" in alone
    assert "lead" not in alone


def test_what_is_pointed_at_is_inside_a_phone() -> None:
    found = [Point("a_long_name_tiny", "input", x / 100, 1, "") for x in range(101)]
    for shown in re.findall(
        r'x="([0-9.]+)%"[^>]*><(?:text|g) class="label (before|after)',
        points(found, Scale([0, 1]), Scale([0, 2])),
    ):
        left, length = 330 * float(shown[0]) / 100, 7.3 * 16 + 9
        assert left + length <= 330 if shown[1] == "after" else left >= length


def test_the_baseline_is_named_beside_others() -> None:
    """Also where the best of as many parameters stands close above it, and another below."""
    scores = {"rotary": 40.0, "shaw": 38.7, "sinusoidal": 38.2, "t5": 37.5, "none": 30.0}
    sizes = {"shaw": 2_115_000, "none": 3_000_000}
    rows = [
        seeds_of(system, {1: bleu}, parameters=sizes.get(system, 2_098_000))[0]
        for system, bleu in scores.items()
    ]
    view = by_parameters(sections_of(rows)[0], Beside())
    assert view is not None
    assert re.search(r'always">(<line [^>]*>)?<text[^>]*>sinusoidal_tiny<', view.content)


def test_trainings_of_one_system_compare_nothing() -> None:
    points = [(1, 90.0), (2, 50.0)]
    two = [learning("t5", points), learning("shaw", points)]
    assert of_learning("both", two) is not None
    assert of_learning("one", [two[0], two[0]]) is None


def test_learning_is_drawn_where_trainings_can_be_told_apart() -> None:
    """From where the first comes near; seeds of a system have one name."""
    updates = range(1000, 11_000, 1000)
    ends = {("t5", 1): 5.0, ("t5", 2): 5.2, ("shaw", 1): 5.4}
    found = [
        learning(name, [(n, end + 50 / (n / 1000) ** 2) for n in updates], seed)
        for (name, seed), end in ends.items()
    ]
    view = of_learning("x", found)
    assert view is not None
    assert re.findall(r'class="label[^>]*>([^<]*)<', view.content) == ["shaw", "t5"]
    assert view.content.count("<polyline points=") == 3
    ticks = [float(tick) for tick in re.findall(r'class="tick left"[^>]*>([^<]*)<', view.content)]
    assert max(ticks) <= 2 * 5.5 + 1
    assert "from 3,000 on" in view.axes


@pytest.mark.parametrize(
    "systems",
    [
        ("diet_rel.encoder,cross", "diet_rel.decoder,cross"),
        ("shaw.encoder,decoder", "diet_rel.encoder,decoder"),
    ],
)
def test_two_long_names_are_told_apart(systems: tuple[str, str]) -> None:
    found = shortened([*systems, "t5"], 16)
    assert found["t5"] == "t5"
    assert len(set(found.values())) == 3
    assert all(len(name) <= 16 for name in found.values())


@pytest.mark.parametrize("most", [0.004, 7.0, 3e12, 1e23, 1e99])
def test_an_axis_has_few_numbers_however_far_it_goes(most: float) -> None:
    scale = Scale([0.0, most])
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 8
    assert len({scale.text(tick) for tick in ticks}) == len(ticks)
