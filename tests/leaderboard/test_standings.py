"""Who stands in a section and in which cluster; differences and p-values are of the means."""

from __future__ import annotations

import dataclasses

import pytest

from diet_mt.evaluation.comparisons import key_of, mark_of
from diet_mt.evaluation.groups import group
from diet_mt.leaderboard.standings import Section, section_of

from ..evaluation.rows import seeds_of
from .made_up import comparisons

ROWS = [
    *seeds_of("sinusoidal", {1: 30.0, 2: 33.0}),
    *seeds_of("diet_rel", {1: 31.0, 2: 35.0, 7: 34.0}),
]


def test_difference_interval_and_p_value_are_of_the_means() -> None:
    found = {key: dataclasses.replace(each, bleu_ci=0.9) for key, each in comparisons(ROWS).items()}
    (each,) = group(ROWS)
    section = section_of(each, found)
    first, baseline = section.standings
    assert (first.name, baseline.name) == ("diet_rel_tiny", "sinusoidal_tiny")
    assert first.gain == pytest.approx(100 / 3 - 31.5)
    assert first.p_value == next(iter(next(iter(found.values())).p_values.values()))
    assert (first.half_width, section_of(each, {}).standings[0].half_width) == (0.9, 1.5)
    assert (baseline.gain, baseline.p_value) == (0.0, None)


def test_without_a_baseline_there_are_neither() -> None:
    (each,) = group(ROWS[2:])
    (standing,) = section_of(each, {}).standings
    assert (standing.gain, standing.p_value, standing.cluster) == (None, None, None)


@pytest.mark.parametrize(
    ("separate", "expected"),
    [
        ("", [1, 1, 1, 1]),
        ("ab ac ad bc bd cd", [1, 2, 3, 4]),
        ("ac ad bc bd", [1, 1, 2, 2]),  # between b and c alone
        ("ab ac ad bd", [1, 2, 2, 2]),  # b and d differ, but c is like either
        ("ad bd cd ac", [1, 1, 1, 2]),
    ],
)
def test_clusters_begin_where_all_above_are_better_than_all_below(
    separate: str, expected: list[int]
) -> None:
    rows = [row for place, name in enumerate("abcd") for row in seeds_of(name, {1: 40.0 - place})]
    (each,) = group(rows)
    marks = {line.system: mark_of(line.results) for line in each.lines}
    known = comparisons(rows)
    for line in each.lines:
        values = {mark: 0.05 if _pair(line.system, name) in separate.split() else 0.06
                  for name, mark in marks.items() if name != line.system}  # fmt: skip
        key = key_of(line.results)
        known[key] = dataclasses.replace(known[key], p_values=values)
    assert clusters(section_of(each, known)) == expected
    del known[key_of(each.lines[0].results)]
    assert clusters(section_of(each, known)) == [None] * 4


def test_clusters_are_of_the_systems_that_are_shown() -> None:
    """c, of one seed, cannot be told from any; without it there is a boundary between a and b."""
    rows = [row for place, name in enumerate("abc") for row in seeds_of(name, {1: 40.0 - place})]
    (each,) = group(rows)
    c = mark_of(each.lines[2].results)
    known = {
        key: dataclasses.replace(
            row, p_values={mark: 0.5 if c in (mark, key[0]) else 0.01 for mark in row.p_values}
        )
        for key, row in comparisons(rows).items()
    }
    whole = section_of(each, known)
    assert clusters(whole) == [1, 1, 1]
    assert clusters(whole.without(["c_tiny"])) == [1, 2]
    assert clusters(section_of(each, known, ["a", "b"])) == [1, 2]
    assert clusters(section_of(each, known, ["a"])) == [None]


def clusters(section: Section) -> list[int | None]:
    return [standing.cluster for standing in section.standings]


def _pair(first: str, second: str) -> str:
    return "".join(sorted(first + second))


def names(section: Section) -> list[str]:
    return [standing.name for standing in section.standings]


def test_a_figure_of_the_paper_is_beside_its_model_alone() -> None:
    both = "shaw sharing=head-wise clip=20 values=True in=encoder,decoder scale=head"
    others = ("values=True", "values=False"), ("clip=20", "clip=16"), ("head-wise", "none")
    for positions, expected in (
        ("shaw clip=16", None),
        (both, 18.74),
        *((both.replace(own, other), None) for own, other in others),
    ):
        rows = seeds_of("shaw", {1: 18.0}, direction="en-cs", test_set="newstest2018")
        (each,) = group([dataclasses.replace(row, positions=positions) for row in rows])
        first, *others = section_of(each, {}).standings
        assert (first.published and first.published.bleu) == expected
        assert ("shaw (not measured)" in [other.name for other in others]) == (expected is None)


def test_what_only_the_paper_has_stands_below() -> None:
    rows = seeds_of("sinusoidal", {1: 18.0}, direction="en-cs", test_set="newstest2018")
    (each,) = group(rows)
    section = section_of(each, {})
    assert names(section) == ["sinusoidal_tiny", "shaw (not measured)", "diet_rel (not measured)"]
    assert [s.published.bleu for s in section.standings if s.published] == [18.55, 18.74, 18.68]
    assert section.standings[1].line is None
    asked = ["sinusoidal", "shaw"]
    assert names(section_of(each, {}, asked)) == ["sinusoidal_tiny", "shaw (not measured)"]
