"""Colours and families of systems."""

from __future__ import annotations

import pytest

from diet_mt.positions import NAMES
from diet_mt.report.style import ENCODINGS, FAMILIES, color_of, family_of, line_styles


def test_every_encoding_has_its_own_colour_and_a_family() -> None:
    assert set(ENCODINGS) == {name.replace("-", "_") for name in NAMES}
    assert len({color for color, _ in ENCODINGS.values()}) == len(ENCODINGS)
    assert {family for _, family in ENCODINGS.values()} | {"other"} == set(FAMILIES)


@pytest.mark.parametrize(
    "name",
    ["diet_rel.1", "diet_rel_tiny", "diet_rel_tiny (beam 5)", "roberta_diet_rel", "diet-rel x=1"],
)
def test_a_system_has_its_colour_under_every_name(name: str) -> None:
    assert (color_of(name), family_of(name)) == ENCODINGS["diet_rel"]


def test_variants_are_lighter_and_other_names_stable() -> None:
    assert color_of("diet_abs_lin_tiny") == ENCODINGS["diet_abs_lin"][0]
    assert color_of("sinusoidal_randomized") == "#555555"
    assert color_of("shaw.published (shaw_tiny)") == color_of("shaw.published") != color_of("shaw")
    assert color_of("another") == color_of("another_tiny")
    assert family_of("another") == "other"


def test_lines_of_one_colour_differ() -> None:
    styles = line_styles(["diet_rel.1", "diet_rel.2", "t5", "t5.encoder"], dashed=True)
    assert [style["marker"] for style in styles.values()] == ["o", "s", "s", "^"]
    assert styles["diet_rel.1"]["color"] == styles["diet_rel.2"]["color"] != styles["t5"]["color"]
    assert [style["linestyle"] for style in styles.values()] == ["-", "-", "-", "--"]
