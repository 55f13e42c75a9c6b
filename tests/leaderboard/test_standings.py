"""Who stands in a section; a difference is of the means, its p-values of pairs of seeds."""

from __future__ import annotations

import pytest

from diet_mt.evaluation.groups import group
from diet_mt.leaderboard.standings import Section, section_of

from ..evaluation.rows import seeds_of
from .made_up import comparisons

ROWS = [
    *seeds_of("sinusoidal", {1: 30.0, 2: 33.0}),
    *seeds_of("diet_rel", {1: 31.0, 2: 35.0, 7: 34.0}),
]


def test_the_difference_is_that_of_the_means_and_the_p_values_are_of_pairs() -> None:
    found = comparisons(ROWS)
    (each,) = group(ROWS)
    section = section_of(each, {comparison.key: comparison for comparison in found})
    first, baseline = section.standings
    assert (first.name, baseline.name) == ("diet_rel_tiny", "sinusoidal_tiny")
    assert [c.bleu_difference for c in found] == [1.0, 2.0, 4.0]  # seed 7 against seed 1
    assert first.gain == pytest.approx(100 / 3 - 31.5)  # not 7 / 3, the mean of the pairs
    assert first.comparisons == tuple(found)
    assert (baseline.gain, baseline.comparisons) == (0.0, ())


def test_a_pair_that_was_not_compared_has_no_p_value() -> None:
    found = comparisons(ROWS)[1:]
    (each,) = group(ROWS)
    section = section_of(each, {comparison.key: comparison for comparison in found})
    assert section.standings[0].comparisons == (None, *found)


def test_without_a_baseline_there_are_neither() -> None:
    (each,) = group(ROWS[2:])
    (standing,) = section_of(each, {}).standings
    assert (standing.gain, standing.comparisons) == (None, ())


def names(section: Section) -> list[str]:
    return [standing.name for standing in section.standings]


def test_what_only_the_paper_has_stands_below() -> None:
    rows = seeds_of("sinusoidal", {1: 18.0}, direction="en-cs", test_set="newstest2018")
    (each,) = group(rows)
    section = section_of(each, {})
    assert names(section) == ["sinusoidal_tiny", "shaw (not measured)", "diet_rel (not measured)"]
    assert [s.published.bleu for s in section.standings if s.published] == [18.55, 18.74, 18.68]
    assert section.standings[1].line is None
    assert names(section_of(each, {}, ["shaw"])) == ["sinusoidal_tiny", "shaw (not measured)"]
