"""What was asked for is what is left, and what there is not is said."""

from __future__ import annotations

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.groups import Group, group
from diet_mt.leaderboard.selection import select

from ..evaluation.rows import seeds_of


@pytest.fixture
def groups() -> list[Group]:
    return group(
        [
            *seeds_of("sinusoidal", {1: 30.0}),
            *seeds_of("shaw", {1: 31.0}),
            *seeds_of("diet_rel", {1: 32.0}, direction="de-en"),
            *seeds_of("diet_rel", {1: 33.0}, test_set="another"),
        ]
    )


def headings(groups: list[Group]) -> list[str]:
    return [each.conditions.heading for each in groups]


def test_nothing_asked_is_everything(groups: list[Group]) -> None:
    assert select(groups, {}) == groups


def test_each_filter(groups: list[Group]) -> None:
    assert headings(select(groups, {"direction": ["de-en"]})) == ["toy test, de-en"]
    assert headings(select(groups, {"test set": ["another", "toy test"]})) == headings(groups)
    assert headings(select(groups, {"system": ["diet_rel"]})) == [
        "toy test, de-en",
        "another, en-de",
    ]
    both = select(groups, {"direction": ["en-de"], "system": ["diet_rel"]})
    assert headings(both) == ["another, en-de"]


def test_the_baseline_is_compared_with_where_it_is_not_shown(groups: list[Group]) -> None:
    (found,) = select(groups, {"system": ["shaw"]})
    assert [line.system for line in found.lines] == ["shaw"]
    assert found.gain(found.lines[0]) == 1.0
    assert found.gain(found.lines[0]) is not None


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"direction": ["en-fr"]}, "unknown direction en-fr; did you mean en-de?"),
        ({"test set": ["x"]}, "unknown test set x; there is another, toy test"),
        (
            {"system": ["shaw", "t5"]},
            "unknown system t5; there is diet_rel, shaw, sinusoidal",
        ),
        (
            {"direction": ["de-en"], "system": ["shaw"]},
            "no result with direction de-en, system shaw at once; there is toy test, en-de: shaw, "
            "sinusoidal; toy test, de-en: diet_rel; another, en-de: diet_rel",
        ),
    ],
)
def test_what_there_is_not_is_said(
    groups: list[Group], asked: dict[str, list[str]], complaint: str
) -> None:
    with pytest.raises(UserError) as caught:
        select(groups, asked)
    assert str(caught.value) == complaint
