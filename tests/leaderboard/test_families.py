"""Every encoding has a family, and it is the one that its code shows."""

from __future__ import annotations

from diet_mt.leaderboard.families import FAMILIES, family_of
from diet_mt.positions import AT_INPUT, NAMES, build_position


def test_families_are_those_of_the_code() -> None:
    families = {name: family_of(name) for name in NAMES}
    assert set(families.values()) == FAMILIES.keys() - {"other"}
    at_input = {name for name, family in families.items() if family in ("input", "none")}
    assert at_input == set(AT_INPUT)
    projected = {name for name in NAMES if build_position(name).mixes_keys}
    assert projected == {name for name, family in families.items() if family == "projected"}


def test_a_description_and_a_name_say_the_same() -> None:
    assert family_of("diet-rel sharing=none scale=head") == family_of("diet_rel") == "logits"
    assert family_of("") == family_of("made up") == "other"
