"""A picture or a table says of which rows it was made, and verify notices when either changes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from diet_mt.errors import UserError
from diet_mt.made_of import check_mark, has_mark, marked

KINDS = pytest.mark.parametrize("name", ["table.md", "picture.png", "picture.svg"])


@pytest.fixture
def rows(tmp_path: Path) -> list[Path]:
    found = [tmp_path / name for name in ("b.jsonl", "a name.jsonl")]
    for path in found:
        path.write_text(f"{path.name}\n", encoding="utf-8")
    return found


def written(out: Path, rows: list[Path]) -> Path:
    """A file of that kind with the mark, as diet-mt writes it."""
    if out.suffix == ".md":
        out.write_bytes(marked(b"| BLEU |\n\n", out, rows))
    else:
        drawing = pytest.importorskip("diet_mt.drawing")
        pytest.importorskip("matplotlib")
        drawing.save(drawing.pyplot().figure(), out, rows=rows)
    return out


@KINDS
def test_rows_that_change_are_noticed(tmp_path: Path, rows: list[Path], name: str) -> None:
    out = written(tmp_path / name, rows)
    assert has_mark(out)
    check_mark(out)
    rows[1].write_text("another row\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"a name.jsonl has changed since it was made"):
        check_mark(out)
    rows[1].unlink()
    with pytest.raises(UserError, match=r"made of a name\.jsonl, which is not there"):
        check_mark(out)


@KINDS
def test_a_change_of_the_file_itself_is_noticed(
    tmp_path: Path, rows: list[Path], name: str
) -> None:
    out = written(tmp_path / name, rows)
    content = out.read_bytes()
    changes = [bytearray(content) for _ in range(3)]
    for changed, place in zip(changes, (9, len(content) // 3, -1), strict=True):
        changed[place] ^= 1
    for changed in (*changes, content[:-30]):
        out.write_bytes(changed)
        with pytest.raises(UserError, match=r"has changed since it was made|does not say of which"):
            check_mark(out)
    out.write_bytes(content)
    check_mark(out)


def test_a_picture_with_its_mark_is_one(tmp_path: Path, rows: list[Path]) -> None:
    image = pytest.importorskip("PIL.Image")
    with image.open(written(tmp_path / "x.png", rows)) as picture:
        picture.load()
        assert picture.text["Source"].startswith("made of a%20name.jsonl ")


def test_rows_may_lie_elsewhere(tmp_path: Path, rows: list[Path]) -> None:
    (tmp_path / "pages").mkdir()
    out = written(tmp_path / "pages" / "table.md", rows)
    check_mark(out)
    rows[0].unlink()
    with pytest.raises(UserError, match=r"made of \.\./b\.jsonl, which is not there"):
        check_mark(out)


def test_rows_may_lie_in_the_folder_of_its_name(tmp_path: Path, rows: list[Path]) -> None:
    (tmp_path / "deep").mkdir()
    out = written(tmp_path / "deep.md", rows)
    for path in rows:
        path.rename(tmp_path / "deep" / path.name)
    check_mark(out)


def test_what_has_no_mark_is_said_to_have_none(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"\x89PNG made of hope")
    assert not has_mark(tmp_path / "x.png")
    with pytest.raises(UserError, match=r"x.png: does not say of which rows it was made"):
        check_mark(tmp_path / "x.png")
    assert not has_mark(tmp_path / "nowhere.png")
    with pytest.raises(UserError, match=r"nowhere.png: no such file"):
        check_mark(tmp_path / "nowhere.png")


def test_what_looks_like_a_mark_is_none(tmp_path: Path, rows: list[Path]) -> None:
    other = f"made of x.jsonl {'0' * 64}; itself {'1' * 64};"
    out = tmp_path / "table.md"
    out.write_bytes(marked(f"{other}\n".encode(), out, rows))
    check_mark(out)


def test_a_comment_of_xml_has_no_double_hyphen(tmp_path: Path) -> None:
    row = tmp_path / "a--b.jsonl"
    row.touch()
    out = written(tmp_path / "x.svg", [row])
    ElementTree.parse(out)
    check_mark(out)


def test_a_folder_may_be_a_link(tmp_path: Path, rows: list[Path]) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "deep")
    out = written(tmp_path / "link" / "table.md", rows)
    check_mark(out)
