"""The columns that all forms share: what is read in a cell, and what it is sorted by."""

from __future__ import annotations

import dataclasses

from diet_mt.evaluation.groups import group
from diet_mt.leaderboard.standings import Section, section_of
from diet_mt.leaderboard.tables import Cell, Table, evaluations_table, rows, standings_table

from ..evaluation.rows import seeds_of
from .made_up import comparisons


def cells(table: Table, row: int) -> dict[str, Cell]:
    return {column.title: column.cells[row] for column in table}


def texts(table: Table, row: int) -> dict[str, str]:
    return {title: cell.text for title, cell in cells(table, row).items()}


def test_there_are_no_empty_columns(plain: Section) -> None:
    table = standings_table(plain)
    assert texts(table, 0) == {
        "system": "diet_rel_tiny",
        "BLEU": "34.75",
        "±": "1.50",
        "to sinusoidal": "+1.25",
        "chrF": "55.50",
        "BLEU of each seed": "1: 34.00, 2: 35.50",
        "parameters": "1,234,567",
    }
    assert [row[3].text for row in rows(table)] == ["+1.25", "0", "-6.50"]


def test_all_that_can_be_known(full: list[Section]) -> None:
    german = standings_table(full[0])
    assert texts(german, 2) == {
        "system": "diet_rel_base",
        "BLEU": "39.41",
        "±": "0.83",
        "length": "0.975",
        "to sinusoidal": "+0.62",
        "p (Holm)": "0.0183",  # of three, one not compared; that of t5, which is less
        "paper": "39.47",
        "paper, to sinusoidal": "+0.47",
        "chrF": "55.50",
        "BLEU of each seed": "1: 39.21, 2: 39.60, 3: 39.43",
        "parameters": "63,082,496",
    }
    assert cells(german, 2)["p (Holm)"].value == full[0].standings[2].p_value
    assert cells(german, 2)["parameters"].value == 63_082_496


def test_a_system_that_only_the_paper_has_stands_last(full: list[Section]) -> None:
    czech = standings_table(full[2])
    assert texts(czech, -1)["system"] == "shaw (not measured)"
    assert texts(czech, -1)["paper"] == "18.74"
    assert cells(czech, -1)["BLEU"] == Cell("", None)


def test_numbers_are_sorted_from_the_best(full: list[Section]) -> None:
    columns = {column.title: column for column in standings_table(full[0])}
    assert columns["BLEU"].falling
    assert not columns["p (Holm)"].falling
    assert not columns["system"].falling
    assert [title for title, column in columns.items() if not column.number] == [
        "system",
        "BLEU of each seed",
    ]


def test_every_evaluation(full: list[Section], plain: Section) -> None:
    assert texts(evaluations_table(full[0].group), 3) == {
        "system": "diet_rel_base",
        "seed": "2",
        "BLEU": "39.60",
        "bootstrap": "39.60 ± 0.83",
        "length": "0.975",
        "1-grams": "69.12",
        "2-grams": "44.05",
        "3-grams": "30.51",
        "4-grams": "21.18",
        "chrF": "55.50",
        "updates": "250,000",
        "target tokens seen": "6,100,000,000",
        "positions": "diet-rel sharing=none scale=head",
        "checkpoint": "cccccccc",
        "evaluated at": "v0-1-gabc",
        "on": "2026-01-02",
    }
    assert texts(evaluations_table(plain.group), 0)["bootstrap"] == "34.00 ± 1.50"


def test_a_p_value_at_its_floor_and_clusters() -> None:
    rows = [*seeds_of("sinusoidal", {1: 30.0}), *seeds_of("diet_rel", {1: 40.0, 2: 41.0})]
    (found,) = group(rows)
    known = {
        key: dataclasses.replace(each, p_values=dict.fromkeys(each.p_values, 0.000999))
        for key, each in comparisons(rows).items()
    }  # 1 / 1001
    table = standings_table(section_of(found, known))
    assert texts(table, 0)["p (Holm)"] == "≤ 0.0010"
    assert [texts(table, place)["cluster"] for place in (0, 1)] == ["1", "2"]


def test_chosen_length_penalties_are_told() -> None:
    first, second = seeds_of("diet_rel", {1: 30.0, 2: 31.0}, lenpen_tried="0:29.0 1.4:30.5")
    rows = [dataclasses.replace(first, lenpen=0.0), dataclasses.replace(second, lenpen=1.4)]
    (found,) = group(rows)
    assert texts(standings_table(section_of(found, {})), 0)["length penalty"] == "1: 0, 2: 1.4"
    shown = texts(evaluations_table(found), 0)
    assert shown["length penalties tried"] == "0:29.0 1.4:30.5"
