"""The board for a terminal."""

from __future__ import annotations

from diet_mt.cli.leaderboard import FORMATS
from diet_mt.leaderboard.standings import Section
from diet_mt.leaderboard.text import text


def test_columns_line_up(plain: Section) -> None:
    lines = text([plain]).split("\n")
    assert lines[0] == plain.group.title
    table = lines[1:5]
    assert len({len(line) for line in table}) == 1
    assert len({line.index("55.50") for line in table[1:]}) == 1
    assert table[0].split()[:2] == ["system", "BLEU"]
    assert table[1].split()[:4] == ["diet_rel_tiny", "34.75", "1.50", "+1.25"]


def test_each_section_has_its_signatures(full: list[Section]) -> None:
    shown = text(full)
    assert shown.count("BLEU nrefs:1|tok:13a|version:2.6.0") == len(full)
    assert shown.count("p: paired bootstrap") == 1
    assert "SacreBLEU's default setting.\n" in shown
    assert "\n\n\n" not in shown


def test_no_form_has_a_speed(full: list[Section]) -> None:
    """That of an evaluation says how busy the machine was. The rows have 1,834 words/s."""
    for form in FORMATS.values():
        shown = form(full)
        assert "1,834" not in shown
        assert "words/s" not in shown
        assert "results/benchmark.md" in shown
