"""WMT18: the training text put together, and sets in SGML."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora.wmt18 import concatenate, read_segments, segments_of, unescape
from diet_mt.errors import UserError


def _stem(folder: Path, name: str, source: bytes, target: bytes) -> Path:
    (folder / f"{name}.de").write_bytes(source)
    (folder / f"{name}.en").write_bytes(target)
    return folder / name


def test_the_parts_follow_one_another_byte_for_byte(tmp_path: Path) -> None:
    one = _stem(tmp_path, "one", b"a\xc2\x85b\xe2\x80\xa8c\r\n\xff", b"1\n2")
    two = _stem(tmp_path, "two.de-en", b"\xef\xbb\xbfc\n\n", b"3\n4\n")
    assert concatenate([one, two], ("de", "en"), tmp_path) == 4
    assert (tmp_path / "train.en").read_bytes() == b"1\n2\n3\n4\n"
    source = (tmp_path / "train.de").read_bytes()
    assert source.count(b"\n") == 4  # the lines stay aligned, and a missing last end is added
    assert source.endswith(b"\xef\xbb\xbfc\n\n")


@pytest.mark.parametrize(
    ("source", "target", "what"),
    [
        (b"a\nb\nc\n", b"1\n2\n", r"x\.de: 3 lines, but .*x\.en has 2"),
        (b"a\n", b"1\n2\n", r"x\.en: 2 lines, but .*x\.de has 1"),
        (b"", b"1\n", r"x\.en: 1 lines, but .*x\.de has 0"),
        (b"", b"", "no lines"),
    ],
)
def test_sides_of_different_lengths(
    tmp_path: Path, source: bytes, target: bytes, what: str
) -> None:
    with pytest.raises(UserError, match=what):
        concatenate([_stem(tmp_path, "x", source, target)], ("de", "en"), tmp_path)
    assert not (tmp_path / "train.de").exists()


def _sgml(folder: Path, text: str, name: str = "x.sgm") -> Path:
    (folder / name).write_bytes(text.encode())
    return folder / name


def test_two_files_make_pairs(tmp_path: Path) -> None:
    source = _sgml(tmp_path, "<seg id='1'>a</seg>")
    assert segments_of(source, _sgml(tmp_path, "<seg>b</seg>", "y")) == [("a", "b")]
    with pytest.raises(UserError, match=r"x\.sgm: 1 segments, but .*y has 2"):
        segments_of(source, _sgml(tmp_path, "<seg>b</seg><seg>c</seg>", "y"))


def test_segments_come_in_order_whatever_stands_between(tmp_path: Path) -> None:
    text = (
        '<doc docid="1">\n<hl>\n<seg id="1"> Gerd &amp; Co. </seg>\n</hl>\n<p><seg id="2">two'
        '\u2028 lines\n over</seg> <SEG id="3">caf\u00e9</SEG></p>\n'
    )
    assert read_segments(_sgml(tmp_path, text)) == ["Gerd & Co.", "two lines over", "caf\u00e9"]


def test_entities_are_replaced_once() -> None:
    assert unescape("&lt;a&gt; &quot;b&quot; &apos;c&apos;") == "<a> \"b\" 'c'"
    assert unescape("&amp;lt; &#228; &#x20AC; &copy AT&T &nbsp;") == "&lt; ä € &copy AT&T &nbsp;"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"<doc></doc>", "0 segments begin and 0 end"),
        (b'<seg id="1">a</seg><seg id="2">b', "2 segments begin and 1 end"),
        (b'<seg id="1">a</seg><seg id="2"> </seg>', "segment 2: empty"),
        (b"<seg>\xff</seg>", r"not valid UTF-8 \(byte 5\)"),
    ],
)
def test_what_is_no_whole_set(tmp_path: Path, text: bytes, what: str) -> None:
    (tmp_path / "x.sgm").write_bytes(text)
    with pytest.raises(UserError, match=rf"x\.sgm.*{what}"):
        read_segments(tmp_path / "x.sgm")
