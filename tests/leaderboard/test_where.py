"""Eight models of one encoding, by where it acts: a table of two by four."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diet_mt.blocks import Grid, Heading, Note, markdown, text
from diet_mt.evaluation.groups import group
from diet_mt.evaluation.records import Result
from diet_mt.leaderboard.boards import board, brief_board
from diet_mt.leaderboard.findings import of_where
from diet_mt.leaderboard.page import page
from diet_mt.leaderboard.standings import Section, Standing, section_of
from diet_mt.leaderboard.where import where_they_act

from ..evaluation.rows import row

BLEU = {
    "encoder": 38.0,
    "decoder": 28.9,
    "cross": 34.7,
    "encoder,decoder": 37.9,
    "encoder,cross": 38.4,
    "decoder,cross": 34.3,
}


def acting(places: str, options: str = "sharing=none", bleu: float = 38.2) -> Result:
    words = ["diet-rel", options, *([f"in={places}"] if places else []), "scale=head"]
    system = f"diet_rel.{places}" if places else "diet_rel"
    return row(system=system, positions=" ".join(words), bleu=bleu)


ALL = [acting(""), *(acting(places, bleu=bleu) for places, bleu in BLEU.items())]
NONE = row(system="none", arch="none_tiny", positions="none scale=head", bleu=29.6)


def section(*results: Result) -> Section:
    (found,) = group(results)
    return section_of(found, {})


def test_each_cell_is_the_model_that_acts_there() -> None:
    shared = row(system="diet_rel.shared", positions="diet-rel sharing=head-wise scale=head")
    (where,) = where_they_act(section(*ALL, NONE, shared))
    assert where.caption == "BLEU by where diet_rel_tiny acts"
    values = [[cell.value for cell in column.cells] for column in where.table[1:]]
    assert values == [[29.6, 38.0], [28.9, 37.9], [34.7, 38.4], [34.3, 38.2]]
    assert where.table[1].cells[1].text == "38.00 ± 1.50"
    assert [column.title for column in where.table] == [
        "",
        "in nothing else",
        "in the decoder",
        "in cross-attention",
        "in decoder and cross-attention",
    ]
    assert [cell.text for cell in where.table[0].cells] == ["not in the encoder", "in the encoder"]
    assert where.names == {f"diet_rel.{places} (diet_rel_tiny)" for places in BLEU}


def test_what_was_not_trained_stays_empty() -> None:
    parts = [each for each in ALL if each.system in ("diet_rel.cross", "diet_rel.encoder,decoder")]
    (where,) = where_they_act(section(*parts))
    assert sum(cell.text != "" for column in where.table[1:] for cell in column.cells) == 2
    assert of_where(where.table) == "With positions in the encoder 37.90 BLEU, without 34.70."
    (unknown,) = where_they_act(section(*parts, acting("encoder,cross", bleu=38.4)))
    assert of_where([unknown.table[0], unknown.table[2]]) == ""


@pytest.mark.parametrize("systems", [("diet_rel",), ("diet_rel", "diet_rel.encoder,decoder")])
def test_one_kind_of_attention_that_no_part_has_and_there_is_no_table(systems: object) -> None:
    """What acts by default may leave that kind out, as in rotary's."""
    some = [each for each in ALL if each.system in systems]
    assert where_they_act(section(*some, NONE)) == []


def test_models_that_differ_in_more_have_their_own_tables() -> None:
    others = [acting(places, "sharing=head-wise", 30.0) for places in BLEU]
    named = [replace(each, system="mine" + each.system[8:], bleu=20.0) for each in ALL]
    tables = where_they_act(section(*ALL, *others, *named))
    first, second, third = sorted(tables, key=lambda where: -(where.table[1].cells[1].value or 0))
    assert len({each.caption for each in tables}) == 3
    assert first.table[1].cells[1].value == 38.0
    assert second.table[1].cells[1].value == 30.0
    assert third.table[1].cells[1].value == 20.0


def test_two_that_claim_a_cell() -> None:
    """The shorter name has it, whichever is better."""
    cross = acting("cross", bleu=50.0)
    other = replace(cross, system="diet_rel.cross.again")
    second = replace(NONE, system="none.again", bleu=31.0)
    (where,) = where_they_act(section(*ALL, NONE, other, second))
    assert where.table[1].cells[0].value == 29.6
    assert where.table[3].cells[0].value == 34.7


def test_without_positions_is_a_model_that_differs_in_nothing_else() -> None:
    (where,) = where_they_act(section(*ALL, replace(NONE, positions="none scale=model")))
    assert where.table[1].cells[0].text == ""


def test_positions_at_the_input_as_well_are_no_place() -> None:
    """Nothing is without positions then."""
    both = [replace(each, positions=f"{each.positions} input=sinusoidal") for each in ALL]
    assert where_they_act(section(*both, NONE)) == []


def test_an_interval_is_that_of_the_table(full: list[Section]) -> None:
    """Of the paired bootstrap where there is one; what only the paper has is no model."""
    comparison = next(filter(None, (each.comparison for each in full[0].standings)))
    compared = [replace(each, comparison=comparison) for each in section(*ALL).standings]
    published = Standing("shaw (not measured)")
    (where,) = where_they_act(replace(section(*ALL), standings=(*compared, published)))
    assert comparison.bleu_ci != ALL[0].bleu_ci
    assert where.table[1].cells[1].text == f"38.00 ± {comparison.bleu_ci:.2f}"


def test_it_stands_below_the_systems_and_in_a_brief_table_in_their_place() -> None:
    found = section(*ALL, NONE)
    caption = "BLEU by where diet_rel_tiny acts"
    assert caption in text(board([found]))
    shown = page([found])
    assert f"<h3>{caption}</h3>" in shown
    said = "With positions in the encoder 37.90 to 38.40 BLEU, without 28.90 to 34.70."
    assert f'<p class="finding">{said}</p>' in shown
    brief = markdown(brief_board([found]))
    assert caption in brief
    assert "diet_rel.cross" not in brief
    assert "34.70 ± 1.50" in brief
    assert "| diet_rel_tiny" in brief
    assert "chrF" not in brief
    assert list(map(type, brief_board([section(*ALL[1:])]))) == [Heading, Note, Grid]
