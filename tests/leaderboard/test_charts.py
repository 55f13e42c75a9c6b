"""Names at the ends of curves: apart, near their curves, the important ones first."""

from __future__ import annotations

import itertools
import re

from diet_mt.leaderboard.charts import HEIGHT, Curve, curves
from diet_mt.leaderboard.scales import Scale


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
    assert 8 < len(found) < 20
    assert "n199" in found
