"""Lines of files: what is counted, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.files import decoded_lines, lines_in


@pytest.mark.parametrize(("text", "count"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\nb", 3)])
def test_lines_are_counted_with_or_without_the_last_end(
    tmp_path: Path, text: bytes, count: int
) -> None:
    path = tmp_path / "text"
    for content in (text, gzip.compress(text)):
        path.write_bytes(content)
        assert lines_in(path) == count


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("one\u2028line\nGr".encode() + b"\xfc\xdfe\n")
    lines = decoded_lines(path)
    assert next(lines) == (f"{path}, line 1", "one\u2028line")
    with pytest.raises(UserError, match=r"text, line 2: not valid UTF-8 \(byte 0xfc at col"):
        next(lines)
