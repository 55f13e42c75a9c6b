"""Ranks, differences, Holm's p-values, clusters, the paper's figures, and filters."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.groups import Conditions, Group, group
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.records import put_row
from diet_mt.positions import NAMES
from diet_mt.report.published import BLEU, figures, source
from diet_mt.report.sections import Section, read_sections, select

from ..evaluation.rows import changed, row, seeds_of, task_row
from .stub import section
from .toy import write_toy

ROWS = [
    *seeds_of("sinusoidal", {1: 30.0, 2: 33.0}),
    *seeds_of("diet_rel", {1: 31.0, 2: 35.0, 7: 34.0}),
]
SINGLE = {"sinusoidal": 30.0, "t5": 31.0, "shaw": 29.0, "none": 20.0}
FOUR = [each for name, bleu in SINGLE.items() for each in seeds_of(name, {1: bleu})]


def clusters(found: Section) -> list[int | None]:
    return [standing.cluster for standing in found.standings]


def names(found: Section) -> list[str]:
    return [standing.name for standing in found.standings]


def test_difference_and_interval_are_of_the_means() -> None:
    first, baseline = section(ROWS, lambda *_: 0.25).standings
    assert (first.name, baseline.name) == ("diet_rel_tiny", "sinusoidal_tiny")
    assert first.gain == pytest.approx(100 / 3 - 31.5)
    assert (first.half_width, first.p_value, first.p_text) == (0.75, 0.25, "0.2500")
    assert (baseline.gain, baseline.p_value) == (0.0, None)
    assert section(ROWS).standings[0].half_width == 1.5  # over sentences
    (alone,) = section(ROWS[2:]).standings
    assert (alone.gain, alone.p_value, alone.cluster) == (None, None, None)


def test_p_values_are_corrected_for_all_measured_systems() -> None:
    """Holm: 0.02 * 3, then 0.025 * 2 is no smaller, then 0.5; also where two are not shown."""
    p = {("shaw", "sinusoidal"): 0.025, ("none", "sinusoidal"): 0.5, ("sinusoidal", "t5"): 0.02}
    shown = section(FOUR, lambda *pair: p.get(pair, 0.5), systems=["t5"])
    assert [each.p_value for each in shown.standings] == pytest.approx([0.06])
    whole = section(FOUR, lambda *pair: p.get(pair, 0.5))
    values = {each.line.system: each.p_value for each in whole.standings if each.line}
    assert values == pytest.approx({"t5": 0.06, "sinusoidal": None, "shaw": 0.06, "none": 0.5})


def test_a_system_without_counts_counts_as_a_test_and_has_no_p_value() -> None:
    found = section(FOUR, lambda *_: 1 / 10001, uncounted=["t5"])
    values = {each.line.system: each.p_text for each in found.standings if each.line}
    assert values == {"t5": "", "sinusoidal": "", "shaw": "≤ 0.0003", "none": "≤ 0.0003"}
    assert clusters(found) == [None] * 4


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
    p = lambda one, other: 0.05 if one + other in separate.split() else 0.06  # noqa: E731
    assert clusters(section(rows, p)) == expected


def test_clusters_are_of_the_systems_shown() -> None:
    """c differs from none; without it there is a boundary between a and b."""
    rows = [row for place, name in enumerate("abc") for row in seeds_of(name, {1: 40.0 - place})]
    p = lambda one, other: 0.5 if "c" in (one, other) else 0.01  # noqa: E731
    assert clusters(section(rows, p)) == [1, 1, 1]
    assert clusters(section(rows, p).without(["c_tiny"])) == [1, 2]
    assert clusters(section(rows, p, ["a", "b"])) == [1, 2]
    assert clusters(section(rows, p, ["a"])) == [None]


# Chen et al. 2021, table 4: sinusoidal (Vaswani et al.), Shaw et al., DIET-REL.
TABLE_4 = {
    "en-de": (39.00, 40.10, 39.47),
    "de-en": (38.42, 38.90, 38.49),
    "en-cs": (18.55, 18.74, 18.68),
    "cs-en": (22.93, 23.89, 23.93),
}


def conditions(test_set: str, direction: str) -> Conditions:
    return group([row(test_set=test_set, direction=direction)])[0].conditions


def test_table_4() -> None:
    for direction, values in TABLE_4.items():
        paper = figures(conditions("WMT18 newstest2018", direction))
        assert tuple(paper) == ("sinusoidal", "shaw", "diet_rel")
        assert tuple(figure.bleu for figure in paper.values()) == values
        gains = [figure.gain for figure in paper.values()]
        assert gains == pytest.approx([bleu - values[0] for bleu in values])
        assert set(paper) <= {name.replace("-", "_") for name in NAMES}
    assert "table 4 (https://arxiv.org/abs/2104.08698)" in source(BLEU)


@pytest.mark.parametrize(
    ("test_set", "direction"),
    [("newstest2017", "de-en"), ("newstest2018-half", "de-en"), ("newstest2018", "en-fr")],
)
def test_other_test_sets_are_not_in_the_paper(test_set: str, direction: str) -> None:
    assert figures(conditions(test_set, direction)) == {}


def test_a_figure_of_the_paper_belongs_to_its_model_alone() -> None:
    both = "shaw sharing=head-wise clip=20 values=True in=encoder,decoder scale=head"
    others = ("values=True", "values=False"), ("clip=20", "clip=16"), ("head-wise", "none")
    for positions, expected in (
        ("shaw clip=16", None),
        (both, 18.74),
        *((both.replace(own, other), None) for own, other in others),
    ):
        rows = seeds_of("shaw", {1: 18.0}, direction="en-cs", test_set="newstest2018")
        first, *rest = section([changed(r, positions=positions) for r in rows]).standings
        assert (first.published and first.published.bleu) == expected
        assert ("shaw (not measured)" in [each.name for each in rest]) == (expected is None)


def test_systems_of_the_paper_alone_are_last() -> None:
    rows = seeds_of("sinusoidal", {1: 18.0}, direction="en-cs", test_set="newstest2018")
    found = section(rows)
    assert names(found) == ["sinusoidal_tiny", "shaw (not measured)", "diet_rel (not measured)"]
    assert [s.published.bleu for s in found.standings if s.published] == [18.55, 18.74, 18.68]
    assert names(section(rows, None, ["sinusoidal", "shaw"])) == names(found)[:2]


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


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["toy test, en-de", "toy test, de-en", "another, en-de"]),
        ({"direction": ["de-en"]}, ["toy test, de-en"]),
        ({"test set": ["another"]}, ["another, en-de"]),
        ({"system": ["diet_rel"]}, ["toy test, de-en", "another, en-de"]),
        ({"direction": ["en-de"], "system": ["diet_rel"]}, ["another, en-de"]),
    ],
)
def test_filters(groups: list[Group], wanted: dict[str, list[str]], expected: list[str]) -> None:
    assert [each.conditions.heading for each in select(groups, wanted)] == expected


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"direction": ["en-fr"]}, "en-fr; did you mean en-de"),
        ({"test set": ["x"]}, "x; choose from another, toy test"),
        ({"system": ["shaw", "t5"]}, "t5; choose from diet_rel, shaw, sinusoidal"),
        ({"direction": ["de-en"], "system": ["shaw"]}, "toy test, de-en: diet_rel; another"),
    ],
)
def test_unknown_values_are_named(
    groups: list[Group], wanted: dict[str, list[str]], named: str
) -> None:
    with pytest.raises(UserError, match=named):
        select(groups, wanted)


def test_systems_of_translation_and_of_tasks_have_two_spellings(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    write_rows(rows, [*seeds_of("diet_rel", {1: 32.0}), *seeds_of("shaw", {1: 31.0})])
    files = [rows, put_row(tmp_path, task_row())]
    for name in ("diet_rel", "diet-rel"):
        (found,), tasks, _ = read_sections(files, {"system": [name]})
        assert (names(found), len(tasks)) == (["diet_rel_tiny"], 1)
    found, tasks, _ = read_sections(files, {"system": ["shaw"]})
    assert (len(found), tasks) == (1, [])
    with pytest.raises(UserError, match="diet-abs; did you mean diet-rel"):
        read_sections(files, {"system": ["diet-abs"]})


def test_the_largest_section_is_first(groups: list[Group], tmp_path: Path) -> None:
    rows = sorted((row for each in groups for row in each.results), key=lambda row: row.test_set)
    write_rows(tmp_path / "rows.jsonl", rows)
    found, _, _ = read_sections([tmp_path / "rows.jsonl"], {})
    headings = [each.group.conditions.heading for each in found]
    assert headings == ["toy test, en-de", "another, en-de", "toy test, de-en"]


def test_a_table_of_counted_rows(tmp_path: Path) -> None:
    """From files to p-values: systems with fewer wrong words are better, whichever are shown."""
    file, _ = write_toy(tmp_path)
    (whole,), _, _ = read_sections([file], {})
    assert [each.line.system for each in whole.standings if each.line] == [
        *("diet_rel", "shaw", "sinusoidal", "none")
    ]
    p_values = {each.line.system: each.p_value for each in whole.standings if each.line}
    assert p_values.pop("sinusoidal") is None
    assert 0 < max(p or 1 for p in p_values.values()) < 0.05
    (some,), _, _ = read_sections([file], {"system": ["diet_rel"]})
    assert dataclasses.replace(whole.standings[0], cluster=None) == some.standings[0]
