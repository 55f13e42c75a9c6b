"""Lists and cells in Markdown; whole boards are in tests/leaderboard."""

from __future__ import annotations

from diet_mt.blocks import Grid, Items, markdown, markdown_table, text


def test_lists_within_lists() -> None:
    assert markdown([Items(["a", "  b|c"])]) == "- a\n  - b|c\n"


def test_a_cell_ends_where_it_should() -> None:
    assert markdown_table(Grid(["x", "y"], [["a|b", "1"]])).split("\n")[2] == "| a\\|b | 1 |"


def test_a_name_is_no_markup() -> None:
    cells = markdown_table(Grid(["x"], [["*a* [y](http://e.vil) <b> `c*d`"]])).split("\n")[2]
    assert cells == r"| \*a\* [y\](http://e.vil) &lt;b> `c*d` |"


def test_a_terminal_gets_no_control_characters_and_no_endless_cells() -> None:
    shown = text([Grid(["x"], [["a\x1b[2J\u202eb"], ["c" * 100_000]]), Items(["\u2066" * 9999])])
    assert not {"\x1b", "\u202e", "\u2066"} & set(shown)
    assert len(shown) < 30_000
    assert r"a\x1b[2J\u202eb" in shown
