"""Tables from columns; texts of rows stay texts in every format; sections of Markdown files."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.report.blocks import (
    Column,
    Folded,
    Heading,
    Items,
    Note,
    Table,
    html,
    legend,
    markdown,
    markdown_table,
    number,
    put_section,
    table,
    text,
)
from diet_mt.system.errors import UserError

WILD = '*a* [y](http://e.vil) <b> `c*d` "q"'
COLUMNS = [
    Column[float]("name", lambda x: f"row {x:g}", number=False),
    Column[float]("value", lambda x: x, "the value.", ".1f"),
    Column[float]("empty", lambda x: None, "never shown."),
]
README = "before\n\n<!-- results:begin -->\nold\n<!-- results:end -->\n\nafter \\1 \u2028\n"


def test_a_table_has_the_columns_with_texts_and_their_legend() -> None:
    shown = table([1.0, -2.0], COLUMNS)
    assert (shown.heads, shown.numbers) == (["name", "value"], [False, True])
    assert list(shown.rows) == [("row 1", "1.0"), ("row -2", "-2.0")]
    assert legend([shown, shown, Note("x")]) == ["value: the value."]
    assert table([], COLUMNS).rows == []


def test_text() -> None:
    blocks = [Heading("H"), Table(["x", "y"], [["a", "1"]]), Items(["i", "  j"]), Note("n"),
              Folded("c", ["ls"]), Folded("f", Table(["z"], [["b"]]))]  # fmt: skip
    short = "H\n  x  y\n  a  1\n  i\n    j\n\nn\n"
    assert text(blocks) == short
    assert text(blocks, verbose=True) == short + "\n  f:\n  z\n  b\n"


def test_a_terminal_gets_no_control_characters_and_no_endless_cells() -> None:
    shown = text([Table(["x"], [["a\x1b[2J\u202eb"], ["c" * 100_000]]), Items(["\u2066" * 9999])])
    assert not {"\x1b", "\u202e", "\u2066"} & set(shown)
    assert len(shown) < 30_000
    assert r"a\x1b[2J\u202eb" in shown


def test_markdown() -> None:
    assert markdown([Items(["a", "  b|c"])]) == "- a\n  - b|c\n"
    assert markdown_table(Table(["x", "y"], [["a|b", "1"]])).split("\n")[2] == "| a\\|b | 1 |"
    cells = markdown_table(Table(["x"], [[WILD]])).split("\n")[2]
    assert cells == r"""| \*a\* [y\](http://e.vil) &lt;b> `c*d` "q" |"""
    shown = markdown([Heading("<i>"), Note("<i>"), Folded("c", ["a <b>"])])
    assert "<i>" not in shown
    assert "a &lt;b&gt;" in shown


def test_html() -> None:
    shown = Table(["x", "y"], [[WILD, "-1.5"]], helps={"y": 'a "help"'})
    blocks = [Heading(WILD), shown, Items([WILD, "  b"]), Note(WILD), Folded("c", [WILD])]
    page = html([*blocks, Folded("f", shown)])
    assert "<b>" not in page
    assert '"q"' not in page
    assert page.count('<td class="n">−1.5</td>') == 2
    assert 'title="a &quot;help&quot;"' in page
    assert "<code>c*d</code>" in page


def test_numbers() -> None:
    assert number(-0.001, "+.2f") == "+0.00"
    assert number(1.25, "+.1f", 0.5) == "+1.2 ± 0.5"


@pytest.mark.parametrize("command", ["", " diet-mt leaderboard x.jsonl --brief"])
def test_only_the_section_is_rewritten(tmp_path: Path, command: str) -> None:
    file = tmp_path / "x.md"
    before = README.replace("begin", f"begin{command}")
    file.write_text(before, encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.md"):
        put_section(file, "results", "a\\1 table\n", True)
    assert file.read_text(encoding="utf-8") == before
    for check in (False, True):
        put_section(file, "results", "a\\1 table\n", check)
    assert file.read_text(encoding="utf-8") == before.replace("\nold\n", "\n\na\\1 table\n\n")


@pytest.mark.parametrize(
    "text",
    [
        "no markers\n",
        "<!-- results:begin -->\n",
        "<!-- results:end -->\n<!-- results:begin -->\n",
        README + README,
        "text <!-- results:begin -->\n<!-- results:end -->\n",
    ],
)
def test_unclear_markers_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.md").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.md"):
        put_section(tmp_path / "x.md", "results", "table", False)
    assert (tmp_path / "x.md").read_text(encoding="utf-8") == text
    with pytest.raises(UserError, match=r"gone\.md"):
        put_section(tmp_path / "gone.md", "results", "x", False)
