"""Ranks, differences, Holm's p-values, clusters, the paper's scores, and filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.evaluation.groups import group
from diet_mt.evaluation.records import put_row
from diet_mt.report.published import published_bleu
from diet_mt.report.sections import Section, read_sections, select
from diet_mt.system.errors import UserError

from ..evaluation.rows import changed, put, row, seeds_of, task_row
from .toy import SENTENCES, section, write_toy

ROWS = [
    *seeds_of("sinusoidal", {1: 30.0, 2: 33.0}),
    *seeds_of("diet_rel", {1: 31.0, 2: 35.0, 7: 34.0}),
]
SINGLE = {"sinusoidal": 30.0, "t5": 31.0, "shaw": 29.0, "none": 20.0}
FOUR = [each for name, bleu in SINGLE.items() for each in seeds_of(name, {1: bleu})]


def of_systems(shown: Section, name: str) -> dict[str, object]:
    """A field of every measured system."""
    return {each.line.system: getattr(each, name) for each in shown.standings if each.line}


def names(shown: Section) -> list[str]:
    return [standing.name for standing in shown.standings]


def test_difference_and_interval_are_of_the_means() -> None:
    shown = section(ROWS, lambda *_: 0.25)
    first, baseline = shown.standings
    assert (first.name, baseline.name) == ("diet_rel_tiny", "sinusoidal_tiny")
    assert first.gain == pytest.approx(100 / 3 - 31.5)
    assert (first.half_width, first.p_text) == (0.75, "0.2500")
    assert (baseline.gain, baseline.p_text) == (0.0, None)
    assert shown.detectable == pytest.approx(0.75 * 1.4294, rel=1e-4)
    assert [section(rows).detectable for rows in (ROWS[:2], ROWS[2:], FOUR)] == [None] * 3
    (alone,) = section(ROWS[2:]).standings
    assert (alone.gain, alone.p_text, alone.cluster) == (None, None, None)


def test_p_values_are_corrected_for_all_measured_systems() -> None:
    """Holm: 0.02 * 3, then 0.025 * 2 is no smaller, then 0.5; also where two are not shown."""
    p = {("shaw", "sinusoidal"): 0.025, ("none", "sinusoidal"): 0.5, ("sinusoidal", "t5"): 0.02}
    values = {"t5": "0.0600", "sinusoidal": None, "shaw": "0.0600", "none": "0.5000"}
    for systems in ([], ["t5"]):
        shown = section(FOUR, lambda *pair: p.get(pair, 0.5), systems)
        assert of_systems(shown, "p_text") == {
            name: value for name, value in values.items() if name in (systems or values)
        }
    shown = section(FOUR, lambda *_: 1 / 10001)
    assert of_systems(shown, "p_text") == {
        name: value and "≤ 0.0003" for name, value in values.items()
    }


@pytest.mark.parametrize(
    ("separate", "systems", "expected"),
    [
        ("", "abcd", [1, 1, 1, 1]),
        ("ab ac ad bc bd cd", "abcd", [1, 2, 3, 4]),
        ("ac ad bc bd", "abcd", [1, 1, 2, 2]),  # between b and c alone
        ("ab ac ad bd", "abcd", [1, 2, 2, 2]),  # b and d differ, but c is like either
        ("ad bd cd ac", "abcd", [1, 1, 1, 2]),
        ("ab", "abc", [1, 1, 1]),  # c differs from none
        ("ab", "ab", [1, 1]),  # also where it is not displayed
        ("ab ac ad bd cd", "acd", [1, 2, 3]),
    ],
)
def test_clusters_begin_where_all_above_are_better_than_all_below(
    separate: str, systems: str, expected: list[int]
) -> None:
    rows = [row for n, name in enumerate("abcd") for row in seeds_of(name, {1: 40.0 - n})]
    for p, clusters in ((0.05 / 6.1, expected), (0.05 / 5.9, [1] * len(systems))):  # of six pairs
        shown = section(
            rows, lambda *pair, p=p: p if "".join(pair) in separate.split() else 1, list(systems)
        )
        assert list(of_systems(shown, "cluster").values()) == clusters


# Chen et al. 2021, table 4: sinusoidal (Vaswani et al.), Shaw et al., DIET-REL.
TABLE_4 = {
    "en-de": (39.00, 40.10, 39.47),
    "de-en": (38.42, 38.90, 38.49),
    "en-cs": (18.55, 18.74, 18.68),
    "cs-en": (22.93, 23.89, 23.93),
}


def test_table_4() -> None:
    for direction, values in TABLE_4.items():
        paper = published_bleu(
            group([row(test_set="WMT18 newstest2018", direction=direction)])[0].conditions
        )
        assert {name: each.scores[direction] for name, each in paper.items()} == dict(
            zip(("sinusoidal", "shaw", "diet_rel"), values, strict=True)
        )
    for test_set, direction in (
        *(("newstest2017", "de-en"), ("newstest2018-half", "de-en"), ("newstest2018", "en-fr")),
    ):
        other = group([row(test_set=test_set, direction=direction)])[0].conditions
        assert published_bleu(other) == {}


# The two readings of table 4: Tensor2Tensor's setting, and that of Vaswani et al. 2017.
@pytest.mark.parametrize(
    ("model", "clip", "other"), [("encoder-normalize-before", "20", "16"), ("", "16", "20")]
)
def test_a_score_of_the_paper_belongs_to_its_model_alone(model: str, clip: str, other: str) -> None:
    both = f"shaw sharing=head-wise clip={clip} values=True in=encoder,decoder scale=head"
    others = (
        ("values=True", "values=False"),
        (f"clip={clip}", f"clip={other}"),
        ("head-wise", "none"),
    )
    where = {"direction": "en-cs", "test_set": "newstest2018", "model": model}
    for positions, expected in (
        ("shaw clip=16", None),
        (both, 18.74),
        *((both.replace(own, other), None) for own, other in others),
    ):
        rows = seeds_of("shaw", {1: 18.0}, **where)
        first, *rest = section([changed(r, positions=positions) for r in rows]).standings
        assert first.published == expected
        assert first.published_gain == (expected and pytest.approx(0.19))
        assert ("shaw (not measured)" in [each.name for each in rest]) == (expected is None)
    rows = seeds_of("sinusoidal", {1: 18.0}, **where)
    shown = section(rows)
    assert names(shown) == ["sinusoidal_tiny", "shaw (not measured)", "diet_rel (not measured)"]
    assert [each.published for each in shown.standings] == [18.55, 18.74, 18.68]
    assert names(section(rows, systems=["sinusoidal", "shaw"])) == names(shown)[:2]


GROUPS = group(
    [
        *seeds_of("sinusoidal", {1: 30.0}),
        *seeds_of("shaw", {1: 31.0}),
        *seeds_of("diet_rel", {1: 32.0}, direction="de-en"),
        *seeds_of("diet_rel", {1: 33.0}, test_set="another"),
    ]
)


@pytest.mark.parametrize(
    ("systems", "directions", "test_sets", "expected"),
    [
        ("", "", "", ["toy test, en-de", "toy test, de-en", "another, en-de"]),
        ("", "de-en", "", ["toy test, de-en"]),
        ("", "", "another", ["another, en-de"]),
        ("diet_rel", "", "", ["toy test, de-en", "another, en-de"]),
        ("diet_rel", "en-de", "", ["another, en-de"]),
        ("", "en-fr", "", "en-fr"),
        ("", "", "x", "x; .*toy test"),
        ("shaw", "de-en", "", "toy test, de-en"),
    ],
)
def test_filters(systems: str, directions: str, test_sets: str, expected: list[str] | str) -> None:
    wanted = [each.split() for each in (systems, directions, test_sets)]
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            select(GROUPS, *wanted)
    else:
        assert [each.conditions.heading for each in select(GROUPS, *wanted)] == expected


def test_systems_of_translation_and_of_tasks_have_two_spellings(tmp_path: Path) -> None:
    rows, _ = write_toy(tmp_path)
    files = [rows, put_row(tmp_path, task_row())]
    for name in ("diet_rel", "diet-rel"):
        (shown,), tasks, _ = read_sections(files, [name])
        assert (names(shown), len(tasks)) == (["diet_rel_tiny"], 1)
    every, tasks, _ = read_sections(files, ["shaw"])
    assert (len(every), tasks) == (1, [])
    with pytest.raises(UserError, match="diet-abs"):
        read_sections(files, ["diet-abs"])


def test_from_files_to_p_values(tmp_path: Path) -> None:
    """Systems with fewer wrong words are better; the largest group is first."""
    file, references = write_toy(tmp_path)
    (whole,), _, _ = read_sections([file])
    p_values = of_systems(whole, "p_text")
    assert list(p_values) == ["diet_rel", "shaw", "sinusoidal", "none"]
    assert p_values.pop("sinusoidal") is None
    assert all(float(str(p).removeprefix("≤ ")) < 0.05 for p in p_values.values())
    (some,), _, _ = read_sections([file], ["diet_rel"])
    assert whole.standings[0] == some.standings[0]
    for name in ("rotary", "t5"):
        (row,) = seeds_of(name, {1: 30.0}, test_set="another", corpus="more")
        put(tmp_path, row, ["a b"] * SENTENCES, references)
    every, _, _ = read_sections([tmp_path / "more.jsonl", file])
    headings = [each.group.conditions.heading for each in every]
    assert headings == ["toy test, en-de", "another, en-de"]
