"""A picture or a table says of which rows it was made, and verify notices when they change."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.made_of import check_mark, has_mark, made_of


@pytest.fixture
def rows(tmp_path: Path) -> list[Path]:
    found = [tmp_path / name for name in ("b.jsonl", "a name.jsonl")]
    for path in found:
        path.write_text(f"{path.name}\n", encoding="utf-8")
    return found


def written(folder: Path, rows: list[Path], name: str) -> Path:
    """A file of that kind with the mark, as diet-mt writes it."""
    out = folder / name
    if out.suffix == ".md":
        out.write_text(f"| BLEU |\n\n<!-- {made_of(rows)} -->\n", encoding="utf-8")
    else:
        drawing = pytest.importorskip("diet_mt.drawing")
        pytest.importorskip("matplotlib")
        drawing.save(drawing.pyplot().figure(), out, rows=rows)
    return out


@pytest.mark.parametrize("name", ["table.md", "picture.png", "picture.svg"])
def test_rows_that_change_are_noticed(tmp_path: Path, rows: list[Path], name: str) -> None:
    out = written(tmp_path, rows, name)
    assert has_mark(out)
    check_mark(out)
    rows[1].write_text("another row\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"a name.jsonl has changed since it was made"):
        check_mark(out)
    rows[1].unlink()
    with pytest.raises(UserError, match=r"made of a name\.jsonl, which is not beside it"):
        check_mark(out)


def test_rows_may_lie_in_the_folder_of_its_name(tmp_path: Path, rows: list[Path]) -> None:
    (tmp_path / "deep").mkdir()
    out = written(tmp_path, rows, "deep.md")
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
