"""What was asked for is what is left, and what there is not is said."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.comparisons import mark_of
from diet_mt.evaluation.groups import Group, group
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.task_records import put_task_result
from diet_mt.leaderboard.boards import legend, remarks
from diet_mt.leaderboard.findings import of_section
from diet_mt.leaderboard.selection import asked_for, select
from diet_mt.leaderboard.standings import section_of

from ..evaluation.rows import seeds_of
from ..evaluation.task_rows import task_row
from .made_up import comparisons


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


def test_systems_of_translation_and_of_tasks_are_spelled_in_two_ways(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    write_rows(rows, [*seeds_of("diet_rel", {1: 32.0}), *seeds_of("shaw", {1: 31.0})])
    tasks = put_task_result(tmp_path, task_row())
    for name in ("diet_rel", "diet-rel"):
        (section,), blocks = asked_for([rows, tasks], {"system": [name]}, check=False)
        assert [standing.name for standing in section.standings] == ["diet_rel_tiny"]
        assert blocks
    sections, blocks = asked_for([rows, tasks], {"system": ["shaw"]}, check=False)
    assert len(sections) == 1
    assert not blocks
    with pytest.raises(UserError, match="unknown system diet-abs; did you mean diet-rel"):
        asked_for([rows, tasks], {"system": ["diet-abs"]}, check=False)


def test_the_largest_comparison_comes_first(groups: list[Group], tmp_path: Path) -> None:
    rows = sorted((row for each in groups for row in each.results), key=lambda row: row.test_set)
    write_rows(tmp_path / "rows.jsonl", rows)
    sections, _ = asked_for([tmp_path / "rows.jsonl"], {}, check=False)
    found = [section.group.conditions.heading for section in sections]
    assert found == ["toy test, en-de", "another, en-de", "toy test, de-en"]


def test_the_baseline_is_compared_with_where_it_is_not_shown(groups: list[Group]) -> None:
    (whole,) = select(groups, {"system": ["shaw"]})
    found = section_of(whole, {}, ["shaw"])
    assert [line.system for line in found.group.lines] == ["shaw"]
    assert [standing.gain for standing in found.standings] == [1.0]


def test_what_is_said_of_a_system_is_said_beside_all() -> None:
    """Chance of a seed and the side of the baseline, whatever else is shown; no cluster without the
    baseline, which might be in it.
    """
    scores = {"sinusoidal": {1: 39.0, 2: 39.2}, "t5": {1: 38.9}, "none": {1: 20.0}}
    rows = [row for system, bleu in scores.items() for row in seeds_of(system, bleu)]
    worst = mark_of(rows[-1:])
    known = {
        key: dataclasses.replace(
            each,
            p_values={mark: 0.001 if worst in (mark, key[0]) else 0.5 for mark in each.p_values},
        )
        for key, each in comparisons(rows).items()
    }
    (whole,) = select(group(rows), {"system": ["t5", "none"]})
    section = section_of(whole, known, ["t5", "none"])
    assert [standing.cluster for standing in section.standings] == [1, 2]
    said = of_section(section)
    assert said.startswith(
        "t5_tiny has the highest BLEU, 38.90, 0.20 below sinusoidal_tiny (p (Holm) = 0.5000). "
    )
    assert any("pooled over all systems of the table" in note for note in legend([section]))
    assert remarks(section) == []


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"direction": ["en-fr"]}, "unknown direction en-fr; did you mean en-de?"),
        ({"test set": ["x"]}, "unknown test set x; choose from another, toy test"),
        ({"system": ["shaw", "t5"]}, "unknown system t5; choose from diet_rel, shaw, sinusoidal"),
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


def test_speeds_are_spoken_of_where_they_lie_beside_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "foreign" / "x.jsonl"
    write_rows(file, seeds_of("sinusoidal", {1: 30.0}))

    def speeds() -> list[str]:
        sections, _ = asked_for([file], {}, check=False)
        return [note for note in legend(sections) if "Speed" in note]

    assert speeds() == []
    (file.parent / "benchmark.md").touch()
    assert speeds() == ["Speed is measured side by side, in benchmark.md, beside the rows."]
