"""Only the section between the markers is written, and checks write nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.report.markers import put_section, put_text, with_section

README = "before\n\n<!-- results:begin -->\nold\n<!-- results:end -->\n\nafter \\1 \u2028\n"


def test_only_the_section_changes() -> None:
    new = with_section(README, "results", "a\\1 table\n")
    assert new == README.replace("\nold\n", "\n\na\\1 table\n\n")
    assert with_section(new, "results", "a\\1 table\n") == new


def test_a_section_that_names_its_command_keeps_it() -> None:
    named = README.replace("begin", "begin diet-mt leaderboard x.jsonl --brief")
    new = with_section(named, "results", "a table\n")
    assert new == named.replace("\nold\n", "\n\na table\n\n")


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
    with pytest.raises(UserError, match=r"x\.md: needs one line"):
        put_section(tmp_path / "x.md", "results", "table", False)
    assert (tmp_path / "x.md").read_text(encoding="utf-8") == text


def test_a_section_does_not_hold_its_own_end() -> None:
    with pytest.raises(UserError, match="results:end"):
        with_section(README, "results", "x <!-- results:end --> y")


def test_a_section_is_written_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "x.md"
    file.write_text(README, encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.md: out of date"):
        put_section(file, "results", "new", True)
    assert file.read_text(encoding="utf-8") == README
    put_section(file, "results", "new", False)
    put_section(file, "results", "new", True)


def test_a_file_is_written_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "new" / "x.html"
    with pytest.raises(UserError, match=r"x\.html: out of date"):
        put_text(file, "a\u0085\n", True)
    assert not file.exists()
    put_text(file, "a\u0085\n", False)
    put_text(file, "a\u0085\n", True)
    with pytest.raises(UserError, match="out of date"):
        put_text(file, "a\n", True)


def test_what_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.md: cannot be read"):
        put_section(tmp_path / "gone.md", "results", "x", False)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: the folder cannot be made"):
        put_text(tmp_path / "file" / "x.html", "x", False)
