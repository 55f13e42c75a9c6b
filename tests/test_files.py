"""Text of files: lines, bounds, names that are not UTF-8; and messages that quote it."""

from __future__ import annotations

import gzip
import lzma
import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from diet_mt.corpora.parallel import read_lines
from diet_mt.evaluation.records import read_results
from diet_mt.system import files
from diet_mt.system.errors import UserError, as_utf8
from diet_mt.system.files import (
    LONGEST_LINE,
    MOST_UNPACKED,
    lines_in,
    raw_bytes,
    raw_lines,
    read_text,
    write_text,
    writing,
)


@pytest.mark.parametrize(("text", "count"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\nb", 3)])
def test_lines_are_counted_with_or_without_the_last_end(
    tmp_path: Path, text: bytes, count: int
) -> None:
    path = tmp_path / "text"
    for content in (text, gzip.compress(text), lzma.compress(text)):
        path.write_bytes(content)
        assert lines_in(path) == count


@pytest.mark.parametrize("packed", [False, True])
def test_the_longest_line(tmp_path: Path, packed: bool) -> None:
    path, longest = tmp_path / "text", b"a" * (LONGEST_LINE - 1) + b"\n"
    pack = (lambda text: gzip.compress(text, 0)) if packed else bytes
    path.write_bytes(pack(b"one\n" + longest))
    assert list(raw_lines(path)) == [b"one\n", longest]
    path.write_bytes(pack(b"one\na" + longest))
    with pytest.raises(UserError, match=r"text, line 2: .*16,777,216"):
        list(raw_lines(path))


READERS = (raw_bytes, lines_in, lambda path: list(read_lines(path)), read_results)


@pytest.mark.parametrize("module", [gzip, lzma])
@pytest.mark.parametrize("read", READERS)
def test_what_unpacks_to_far_more_than_text_does(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Path], object],
    module: ModuleType,
) -> None:
    path = tmp_path / "text.gz"
    text = b"\n" * (1 << 19) if read is read_results else b"a\n" * (1 << 18)
    path.write_bytes(module.compress(text))
    assert path.stat().st_size * MOST_UNPACKED < 1 << 18
    read(path)  # as much fits into memory
    monkeypatch.setattr(files, "_UNPACKED_ANYHOW", 1 << 18)
    with pytest.raises(UserError, match=r"text\.gz: .*50 times"):
        read(path)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"f\xe9\xff.txt")
    path = tmp_path / name
    write_text(path, f"{path} ü\n")
    assert path.read_bytes() == os.fsencode(path) + " ü\n".encode()
    assert read_text(path) == f"{path} ü\n"
    assert as_utf8(f"{name} ü") == r"f\udce9\udcff.txt ü"


def write_letters(path: Path, letter: str) -> None:
    for _ in range(50):
        with writing(path) as file:
            for _ in range(20):
                file.write(letter * 1000)
                file.flush()


def test_two_processes_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "text"
    forked = multiprocessing.get_context("fork")
    writers = [forked.Process(target=write_letters, args=(path, letter)) for letter in "ab"]
    for each in writers:
        each.start()
    contents = set()
    while any(each.is_alive() for each in writers):
        if path.exists():
            contents.add(path.read_text())
    for each in writers:
        each.join()
    assert [each.exitcode for each in writers] == [0, 0]
    assert contents <= {"a" * 20_000, "b" * 20_000}
    assert os.listdir(tmp_path) == ["text"]


def test_a_second_writer_waits(tmp_path: Path) -> None:
    path = tmp_path / "text"
    second = threading.Thread(target=write_text, args=(path, "second"))
    with writing(path) as file:
        second.start()
        second.join(0.2)
        assert second.is_alive()
        file.write("first")
    second.join()
    assert read_text(path) == "second"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 漢 two  spaces", "plain ä 漢 two  spaces"),
        ("a\n   b\tc", "a b c"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\u202egnp.exe\u2066", r"\u202egnp.exe\u2066"),
        ("\x9b2J\u2028", r"\x9b2J\u2028"),
        ("not\udcffutf8", r"not\udcffutf8"),
        ("a" * 1000 + "end", "a" * 534 + " ... " + "a" * 263 + "end"),
    ],
)
def test_a_message_is_one_printable_line_of_bounded_length(text: str, shown: str) -> None:
    assert str(UserError(text)) == shown
