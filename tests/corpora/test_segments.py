"""Sentences out of SGML."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora.segments import read_segments, unescape
from diet_mt.errors import UserError


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
