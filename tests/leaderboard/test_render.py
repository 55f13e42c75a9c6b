"""The board for a terminal and for a README."""

from __future__ import annotations

from diet_mt.evaluation.groups import group
from diet_mt.leaderboard.boards import board, brief_board
from diet_mt.leaderboard.page import page
from diet_mt.leaderboard.readme import with_section
from diet_mt.leaderboard.render import Grid, Items, markdown, markdown_table, text
from diet_mt.leaderboard.standings import Section, section_of

from ..evaluation.rows import row

WILD = "cpu <!-- results:end --> a|b <i>&"


def test_columns_line_up_in_a_terminal(plain: Section) -> None:
    lines = text(board([plain])).split("\n")
    assert lines[0] == plain.group.title
    table = lines[1:5]
    assert len({line.index("55.50") for line in table[1:]}) == 1
    assert table[0].split()[:2] == ["system", "BLEU"]
    assert table[1].split()[:4] == ["diet_rel_tiny", "34.75", "1.50", "+1.25"]


def test_each_section_has_its_signatures(full: list[Section]) -> None:
    shown = text(board(full))
    assert shown.count("BLEU nrefs:1|tok:13a|version:2.6.0") == len(full)
    assert shown.count("p: of the difference to sinusoidal") == 1
    assert "\n\n\n" not in shown
    assert "fairseq-train" not in shown


def test_markdown(plain: Section) -> None:
    lines = markdown(board([plain])).split("\n")
    assert (
        lines[2].replace(" ", "") == "|system|BLEU|±|tosinusoidal|chrF|BLEUofeachseed|parameters|"
    )
    assert lines[3].replace("-", "") == "|:|:|:|:|:|:|:|"
    assert lines[4].split()[1:6:2] == ["diet_rel_tiny", "34.75", "1.50"]
    assert "- BLEU nrefs:1|tok:13a|version:2.6.0" in lines
    assert "fairseq-generate data/bin --path CHECKPOINTS/checkpoint_best.pt" in lines


def test_a_brief_board_is_narrow(plain: Section) -> None:
    shown = markdown(brief_board([plain]))
    assert "chrF" not in shown
    assert "<details>" not in shown


def test_lists_within_lists() -> None:
    assert markdown([Items(["a", "  b|c"])]) == "- a\n  - b|c\n"


def test_a_cell_ends_where_it_should() -> None:
    assert markdown_table(Grid(["x", "y"], [["a|b", "1"]])).split("\n")[2] == "| a\\|b | 1 |"


def test_nothing_in_a_row_is_markup() -> None:
    fields = dict.fromkeys(("system", "test_set", "bleu_signature", "fairseq", "torch"), WILD)
    found = group([row(**fields, generate_command=f"fairseq-generate '{WILD}'")])
    shown = markdown(board([section_of(each, {}) for each in found]))
    assert "<!--" not in shown
    assert "<i>" not in shown
    readme = "<!-- results:begin -->\n<!-- results:end -->\n"
    once = with_section(readme, "results", shown)
    assert with_section(once, "results", shown) == once


def test_no_form_has_a_speed(full: list[Section]) -> None:
    """That of an evaluation says how busy the machine was. The rows have 1,834 words/s."""
    for shown in (text(board(full)), markdown(board(full)), page(full)):
        assert "1,834" not in shown
        assert "words/s" not in shown
        assert "results/benchmark.md" in shown
