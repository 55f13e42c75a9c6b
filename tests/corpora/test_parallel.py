"""Parallel text is read strictly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.corpora import parallel
from diet_mt.system import files
from diet_mt.system.errors import UserError


def _file(folder: Path, content: bytes, name: str = "text.en") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_line_ends_at_a_newline_alone(tmp_path: Path) -> None:
    text = "one\u0085two\u2028three\x0cfour\x1cfive"
    assert list(parallel.read_lines(_file(tmp_path, f"{text}\nlast".encode()))) == [text, "last"]
    source = _file(tmp_path, "a\u2028b\nc\n".encode(), "x.en")
    target = _file(tmp_path, b"A\nC\n", "x.de")
    assert list(parallel.read_parallel(source, target)) == [("a\u2028b", "A"), ("c", "C")]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"fine\nf\xfcr\n", 2),
        (b"fine\n \t\xc2\xa0\nfine\n", 2),
        (b"fine\nfine\n\n", 3),
    ],
)
def test_invalid_lines_are_refused_with_their_place(
    tmp_path: Path, content: bytes, line: int
) -> None:
    path = _file(tmp_path, content)
    with pytest.raises(UserError, match=rf"^{path}, line {line}: "):
        list(parallel.read_parallel(path, path))


def test_byte_order_marks_and_windows_line_ends_are_no_text(tmp_path: Path) -> None:
    path = _file(tmp_path, b"\xef\xbb\xbfa\r\n\r\nb\rc\xef\xbb\xbf\r\n")
    assert list(parallel.read_lines(path)) == ["a", "", "b\rc\ufeff"]


@pytest.mark.parametrize(
    ("english", "german", "what"),
    [
        (b"1\n2\n3\n", b"1\n2\n", "x.en: 3 lines, but .*x.de has 2"),
        (b"1\n2\n", b"1\n2\n3\n", "x.de: 3 lines, but .*x.en has 2"),
        (b"", b"", "x.en: no lines"),
    ],
)
def test_sides_of_unequal_lengths_are_refused(
    tmp_path: Path, english: bytes, german: bytes, what: str
) -> None:
    sides = _file(tmp_path, english, "x.en"), _file(tmp_path, german, "x.de")
    with pytest.raises(UserError, match=what):
        list(parallel.read_parallel(*sides))


def test_a_file_has_its_name_only_when_it_is_complete(tmp_path: Path) -> None:
    def interrupted() -> Iterator[str]:
        yield "one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_lines(tmp_path / "out", interrupted())
    assert list(tmp_path.iterdir()) == []
    assert files.write_lines(tmp_path / "out", ["one", "zwei\u2028ü"]) == 2
    assert (tmp_path / "out").read_bytes() == "one\nzwei\u2028ü\n".encode()


def test_every_file_of_a_corpus_is_checked(tmp_path: Path) -> None:
    for split, lines in (("train", 3), ("valid", 2), ("test", 1)):
        for lang in ("en", "de"):
            _file(tmp_path, b"word\n" * lines, f"{split}.{lang}")
    parallel.check(tmp_path, ("en", "de"))
    for split in ("valid", "test", "train"):
        whole = (tmp_path / f"{split}.de").read_bytes()
        _file(tmp_path, b"word\n\xff\n", f"{split}.de")
        with pytest.raises(UserError, match=rf"{split}\.de, line 2"):
            parallel.check(tmp_path, ("en", "de"))
        _file(tmp_path, whole, f"{split}.de")
