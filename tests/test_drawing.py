"""The colours of systems."""

from __future__ import annotations

import pytest

from diet_mt.drawing import COLORS, color_of, dashes, line_styles
from diet_mt.positions import NAMES


def test_every_encoding_has_a_colour_of_its_own() -> None:
    assert set(COLORS) == {name.replace("-", "_") for name in NAMES}
    assert len(set(COLORS.values())) == len(COLORS)


@pytest.mark.parametrize(
    "name",
    ["diet_rel.1", "diet_rel_tiny", "diet_rel_tiny (beam 5)", "roberta_diet_rel", "diet-rel"],
)
def test_a_system_has_its_colour_whatever_it_is_called(name: str) -> None:
    assert color_of(name) == COLORS["diet_rel"]


def test_a_variant_is_lighter_and_another_name_always_the_same() -> None:
    assert color_of("diet_abs_lin_tiny") == COLORS["diet_abs_lin"]
    assert color_of("sinusoidal_randomized") == "#555555"
    assert color_of("shaw.published (shaw_tiny)") == color_of("shaw.published") != color_of("shaw")
    assert color_of("another") == color_of("another_tiny") in COLORS.values()


def test_lines_of_one_colour_have_their_own_markers() -> None:
    styles = line_styles(["diet_rel.1", "diet_rel.2", "t5"])
    assert [style["marker"] for style in styles.values()] == ["o", "s", "s"]
    assert styles["diet_rel.1"]["color"] == styles["diet_rel.2"]["color"] != styles["t5"]["color"]


def test_a_variant_beside_its_system_is_dashed() -> None:
    names = ["shaw_tiny", "shaw.encoder,decoder (shaw_tiny)", "rotary_ntk (rotary_tiny)", "other"]
    assert list(dashes(names).values()) == ["-", "--", "-", "-"]
