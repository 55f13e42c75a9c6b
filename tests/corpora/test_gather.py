"""Putting a training corpus together."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import gather
from diet_mt.corpora.gather import read_segments, unescape
from diet_mt.errors import UserError


def _stem(folder: Path, name: str, source: bytes, target: bytes) -> Path:
    (folder / f"{name}.de").write_bytes(source)
    (folder / f"{name}.en").write_bytes(target)
    return folder / name


def test_the_parts_follow_one_another_byte_for_byte(tmp_path: Path) -> None:
    one = _stem(tmp_path, "one", b"a\xc2\x85b\xe2\x80\xa8c\r\n\xff", b"1\n2")
    two = _stem(tmp_path, "two.de-en", b"\xef\xbb\xbfc\n\n", b"3\n4\n")
    assert gather.gather([one, two], ("de", "en"), tmp_path) == 4
    assert (tmp_path / "train.en").read_bytes() == b"1\n2\n3\n4\n"
    source = (tmp_path / "train.de").read_bytes()
    assert source.count(b"\n") == 4  # the lines stay aligned, and a missing last end is added
    assert source.endswith(b"\xef\xbb\xbfc\n\n")


@pytest.mark.parametrize(
    ("source", "target", "what"),
    [
        (b"a\nb\nc\n", b"1\n2\n", r"x\.de: 3 lines, but .*x\.en has 2; line n of one"),
        (b"a\n", b"1\n2\n", r"x\.en: 2 lines, but .*x\.de has 1"),
        (b"", b"1\n", r"x\.de: no lines"),
        (b"", b"", "no lines"),
    ],
)
def test_what_does_not_match_is_refused(
    tmp_path: Path, source: bytes, target: bytes, what: str
) -> None:
    with pytest.raises(UserError, match=what):
        gather.gather([_stem(tmp_path, "x", source, target)], ("de", "en"), tmp_path)
    assert not (tmp_path / "train.de").exists()


def test_a_missing_side_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.de").write_bytes(b"a\n")
    with pytest.raises(UserError, match=r"x\.en: cannot be read"):
        gather.gather([tmp_path / "x"], ("de", "en"), tmp_path)


def test_a_development_set_comes_from_two_files(tmp_path: Path) -> None:
    sets = [tmp_path / name for name in ("src.de.sgm", "ref.en.sgm")]
    for path in sets:
        path.write_text(f"<seg id='1'>{path.stem}</seg>")
    assert gather.development(sets, ("de", "en"), tmp_path) == 1
    assert (tmp_path / "valid.en").read_text() == "ref.en\n"
    sets[1].write_text("<seg>a</seg><seg>b</seg>")
    with pytest.raises(UserError, match="1 segments, but"):
        gather.development(sets, ("de", "en"), tmp_path)


def _read(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "x.sgm").write_bytes(text.encode())
    return read_segments(tmp_path / "x.sgm")


def test_segments_come_in_order_whatever_stands_between(tmp_path: Path) -> None:
    text = (
        '<doc docid="1">\n<hl>\n<seg id="1"> Gerd &amp; Co. </seg>\n</hl>\n<p><seg id="2">two'
        '\u2028 lines\n over</seg> <SEG id="3">caf\u00e9</SEG></p>\n'
    )
    assert _read(tmp_path, text) == ["Gerd & Co.", "two lines over", "caf\u00e9"]


def test_entities_are_replaced_once() -> None:
    assert unescape("&lt;a&gt; &quot;b&quot; &apos;c&apos;") == "<a> \"b\" 'c'"
    assert unescape("&amp;lt; &#228; &#x20AC; &copy AT&T &nbsp;") == "&lt; ä € &copy AT&T &nbsp;"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<doc></doc>", "0 segments begin and 0 end"),
        ('<seg id="1">a</seg><seg id="2">b', "2 segments begin and 1 end; not a whole set"),
        ('<seg id="1">a</seg><seg id="2"> </seg>', "segment 2: empty"),
    ],
)
def test_what_is_no_whole_set_is_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        _read(tmp_path, text)


def test_invalid_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.sgm").write_bytes(b"<seg>\xff</seg>")
    with pytest.raises(UserError, match=r"x\.sgm: not valid UTF-8 \(byte 5\)"):
        read_segments(tmp_path / "x.sgm")
