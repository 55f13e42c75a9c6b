"""Reading parallel text strictly."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt import files
from diet_mt.corpora import parallel as corpus
from diet_mt.errors import UserError


def _file(folder: Path, content: bytes, name: str = "text.en") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_line_is_what_a_newline_ends(tmp_path: Path) -> None:
    text = "one\u0085two\u2028three\x0cfour\x1cfive"
    path = _file(tmp_path, f"{text}\nnext\n".encode())
    assert list(corpus.read_lines(path)) == [text, "next"]


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    assert list(corpus.read_lines(_file(tmp_path, b"one\ntwo"))) == ["one", "two"]


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b"fine\nf\xfcr\n", 2, "not valid UTF-8 (byte 0xfc at column 2)"),
        (b"\xef\xbb\xbffine\n", 1, "byte order mark"),
        (b"fine\nfine\r\n", 2, "Windows line end"),
        (b"fine\n\nfine\n", 2, "empty"),
        (b"fine\n \t\xc2\xa0\n", 2, "empty"),
        (b"fine\nfine\n\n", 3, "empty"),
    ],
)
def test_what_cannot_be_trusted_is_refused_with_its_place(
    tmp_path: Path, content: bytes, line: int, what: str
) -> None:
    path = _file(tmp_path, content)
    with pytest.raises(UserError) as caught:
        list(corpus.read_lines(path))
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert what in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.en: cannot be read \(No such file"):
        list(corpus.read_lines(tmp_path / "absent.en"))


def test_pairs_keep_together_where_only_one_side_has_a_line_separator(tmp_path: Path) -> None:
    source = _file(tmp_path, "a\u2028b\nc\n".encode(), "x.en")
    target = _file(tmp_path, b"A\nC\n", "x.de")
    assert list(corpus.read_parallel(source, target)) == [("a\u2028b", "A"), ("c", "C")]


@pytest.mark.parametrize("longer", ["x.en", "x.de"])
def test_unequal_lengths_are_refused(tmp_path: Path, longer: str) -> None:
    for name in ("x.en", "x.de"):
        _file(tmp_path, b"1\n2\n3\n" if name == longer else b"1\n2\n", name)
    shorter = {"x.en": "x.de", "x.de": "x.en"}[longer]
    with pytest.raises(UserError) as caught:
        list(corpus.read_parallel(tmp_path / "x.en", tmp_path / "x.de"))
    assert f"{longer}: 3 lines, but " in str(caught.value)
    assert f"{shorter} has 2; line n of one must translate" in str(caught.value)


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    source, target = _file(tmp_path, b"", "x.en"), _file(tmp_path, b"", "x.de")
    with pytest.raises(UserError, match="no lines"):
        list(corpus.read_parallel(source, target))


def test_a_file_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    def interrupted() -> Iterator[str]:
        yield "one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_lines(tmp_path / "out", interrupted())
    assert not (tmp_path / "out").exists()
    assert files.write_lines(tmp_path / "out", ["one", "zwei\u2028ü"]) == 2
    assert (tmp_path / "out").read_bytes() == "one\nzwei\u2028ü\n".encode()
    assert not (tmp_path / "out.part").exists()


def test_all_of_a_corpus_is_checked(tmp_path: Path) -> None:
    for split, lines in (("train", 3), ("valid", 2), ("test", 1)):
        for lang in ("en", "de"):
            _file(tmp_path, b"word\n" * lines, f"{split}.{lang}")
    corpus.check(tmp_path, "en", "de")
    # Each of them is read.
    for split in ("valid", "test", "train"):
        whole = (tmp_path / f"{split}.de").read_bytes()
        _file(tmp_path, b"word\n\xff\n", f"{split}.de")
        with pytest.raises(UserError, match=rf"{split}\.de, line 2: not valid UTF-8"):
            corpus.check(tmp_path, "en", "de")
        _file(tmp_path, whole, f"{split}.de")


def test_a_gzipped_file_is_read_as_it_was(tmp_path: Path) -> None:
    packed = gzip.compress("a\u0085b\nc\n".encode())
    assert list(corpus.read_lines(_file(tmp_path, packed))) == ["a\u0085b", "c"]
    with pytest.raises(UserError, match=r"text\.en: cannot be read .*; replace it"):
        list(corpus.read_lines(_file(tmp_path, packed[:-9])))


def test_only_what_is_missing_is_converted(tmp_path: Path) -> None:
    for split in ("train", "valid", "test", "test1"):
        _file(tmp_path, b"x\n", f"{split}.en")
    out = tmp_path / "out"
    out.mkdir()
    _file(out, b"whole\n", "valid.en")
    made = []
    corpus.convert(
        tmp_path, out, ["en"], lambda source, new, lang: made.append((source, new, lang))
    )
    assert made == [
        (tmp_path / f"{s}.en", out / f"{s}.en", "en") for s in ("train", "test", "test1")
    ]
