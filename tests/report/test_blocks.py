"""Tables from columns; texts of rows stay texts in every format."""

from __future__ import annotations

from diet_mt.report.blocks import (
    Column,
    Commands,
    Folded,
    Grid,
    Heading,
    Items,
    Note,
    html,
    legend,
    markdown,
    markdown_table,
    number,
    table,
    text,
)

WILD = '*a* [y](http://e.vil) <b> `c*d` "q"'
COLUMNS = [
    Column[float]("name", lambda x: f"row {x:g}", number=False),
    Column[float]("value", lambda x: f"{x:.1f}", "the value."),
    Column[float]("empty", lambda x: "", "never shown."),
]


def test_a_table_has_the_columns_with_texts_and_their_legend() -> None:
    grid = table([1.0, -2.0], COLUMNS)
    assert (grid.heads, grid.numbers) == (["name", "value"], [False, True])
    assert list(grid.rows) == [("row 1", "1.0"), ("row -2", "-2.0")]
    assert legend([grid, grid, Note("x")]) == ["value: the value."]
    assert table([], COLUMNS).rows == []


def test_text() -> None:
    blocks = [Heading("H"), Grid(["x", "y"], [["a", "1"]]), Items(["i", "  j"]), Note("n"),
              Commands("c", ["ls"]), Folded("f", Grid(["z"], [["b"]]))]  # fmt: skip
    short = "H\n  x  y\n  a  1\n  i\n    j\n\nn\n"
    assert text(blocks) == short
    assert text(blocks, verbose=True) == short + "\n  f:\n  z\n  b\n"


def test_a_terminal_gets_no_control_characters_and_no_endless_cells() -> None:
    shown = text([Grid(["x"], [["a\x1b[2J\u202eb"], ["c" * 100_000]]), Items(["\u2066" * 9999])])
    assert not {"\x1b", "\u202e", "\u2066"} & set(shown)
    assert len(shown) < 30_000
    assert r"a\x1b[2J\u202eb" in shown


def test_markdown() -> None:
    assert markdown([Items(["a", "  b|c"])]) == "- a\n  - b|c\n"
    assert markdown_table(Grid(["x", "y"], [["a|b", "1"]])).split("\n")[2] == "| a\\|b | 1 |"
    cells = markdown_table(Grid(["x"], [[WILD]])).split("\n")[2]
    assert cells == r"""| \*a\* [y\](http://e.vil) &lt;b> `c*d` "q" |"""
    shown = markdown([Heading("<i>"), Note("<i>"), Commands("c", ["a <b>"])])
    assert "<i>" not in shown
    assert "a &lt;b&gt;" in shown


def test_html() -> None:
    grid = Grid(["x", "y"], [[WILD, "-1.5"]], helps={"y": 'a "help"'})
    blocks = [Heading(WILD), grid, Items([WILD, "  b"]), Note(WILD), Commands("c", [WILD])]
    shown = html([*blocks, Folded("f", grid)])
    assert "<b>" not in shown
    assert '"q"' not in shown
    assert shown.count('<td class="n">−1.5</td>') == 2
    assert 'title="a &quot;help&quot;"' in shown
    assert "<code>c*d</code>" in shown


def test_numbers() -> None:
    assert number(-0.001, "+.2f") == "+0.00"
    assert number(1.25, "+.1f", 0.5) == "+1.2 ± 0.5"
